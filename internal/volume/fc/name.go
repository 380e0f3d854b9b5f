package fc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/scsi"
)

// name identifies a disk in the fabric: by the WWNs of target ports and a LUN, or by its WWIDs.
type name struct {
	wwns  []string
	lun   string
	wwids []string
}

func nameOf(in *v1.FCVolumeSource) (name, error) {
	if in.Lun != nil && len(in.TargetWWNs) != 0 {
		return name{wwns: in.TargetWWNs, lun: strconv.Itoa(int(*in.Lun))}, nil
	}
	var n name
	for _, wwid := range in.WWIDs {
		n.wwids = append(n.wwids, strings.ReplaceAll(wwid, " ", "_"))
	}
	if len(n.wwids) == 0 {
		return name{}, errors.New("fc: no fc disk information found")
	}
	return n, nil
}

// dirName is the name of the disk's directory.
func (n name) dirName() string {
	if len(n.wwns) != 0 {
		return strings.Join(n.wwns, "-") + "-lun-" + n.lun
	}
	return strings.Join(n.wwids, "-")
}

// parseDirName is the reverse of dirName.
func parseDirName(dirName string) (name, error) {
	parts := strings.Split(dirName, "-")
	last := len(parts) - 1
	if last < 1 || parts[last-1] != "lun" {
		return name{wwids: append(parts, dirName)}, nil // one WWID with dashes, or several WWIDs
	}
	if last < 2 {
		return name{}, fmt.Errorf("fc: parse directory name %s: not a disk", dirName)
	}
	return name{wwns: parts[:last-1], lun: parts[last]}, nil
}

// disks are the current paths to the disk.
func (n name) disks(h scsi.Host) ([]string, error) {
	dir, match := filepath.Join(h.Dev, "disk/by-id"), func(link string) bool {
		id, ok := strings.CutPrefix(link, "scsi-")
		return ok && slices.Contains(n.wwids, id)
	}
	if len(n.wwns) != 0 {
		dir = filepath.Join(h.Dev, "disk/by-path")
		pattern := regexp.MustCompile(`^(?:pci-.*-fc|fc)-0x(.+)-lun-` + regexp.QuoteMeta(n.lun) + `$`)
		match = func(link string) bool {
			wwn := pattern.FindStringSubmatch(link)
			return wwn != nil && slices.Contains(n.wwns, wwn[1])
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("fc: list disks: %w", err)
	}
	var found []string
	for _, e := range entries {
		if !match(e.Name()) {
			continue
		}
		// A link may be dangling for a moment after its disk was removed.
		if disk, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())); err == nil {
			found = append(found, disk)
		}
	}
	return found, nil
}
