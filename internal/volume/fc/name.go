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

// name is how the fabric calls a disk: by ports of its target and a number, or by its own
// identity, of which one may be given for every path.
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

// directory is what the disk's directory is called.
func (n name) folder() string {
	if len(n.wwns) != 0 {
		return strings.Join(n.wwns, "-") + "-lun-" + n.lun
	}
	return strings.Join(n.wwids, "-")
}

// byFolder takes a directory's name apart again.
func byFolder(folder string) (name, error) {
	parts := strings.Split(folder, "-")
	last := len(parts) - 1
	if last < 1 || parts[last-1] != "lun" {
		return name{wwids: append(parts, folder)}, nil // one name with dashes, or several
	}
	if last < 2 {
		return name{}, fmt.Errorf("fc: directory %s names no disk", folder)
	}
	return name{wwns: parts[:last-1], lun: parts[last]}, nil
}

// disks are the paths to the disk that the node has now.
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
		return nil, fmt.Errorf("fc: look for disks: %w", err)
	}
	var found []string
	for _, e := range entries {
		if !match(e.Name()) {
			continue
		}
		// A link may outlive its disk for a moment.
		if disk, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name())); err == nil {
			found = append(found, disk)
		}
	}
	return found, nil
}
