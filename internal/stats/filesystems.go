package stats

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// fileSystem is a mounted file system of the node, with the counters of its disk.
type fileSystem struct {
	device       string
	major, minor int
	fsInfo
	disk diskTraffic
}

// diskTraffic is a line of /proc/diskstats.
type diskTraffic struct {
	reads, readsMerged, sectorsRead, readMillis       uint64
	writes, writesMerged, sectorsWritten, writeMillis uint64
	running, busyMillis, weightedMillis               uint64
}

// diskTypes are the file system types that store files.
var diskTypes = map[string]bool{
	"btrfs": true, "ext2": true, "ext3": true, "ext4": true, "overlay": true, "tmpfs": true,
	"xfs": true, "zfs": true, "bcachefs": true, "f2fs": true,
}

// readFileSystems lists the mounted file systems of the node, each device once. It omits those
// of pods and containers: they count with their pods, and there may be thousands.
func readFileSystems(s *fileReader, rootDir string) ([]fileSystem, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, err
	}
	disks, err := readDiskTraffic(s)
	if err != nil {
		return nil, err
	}
	var all []fileSystem
	seen := map[string]bool{}
	for _, m := range mounts {
		device, ok := deviceOf(m, rootDir)
		if !ok || seen[device] {
			continue
		}
		on, err := statfs(m.Mountpoint)
		if err != nil || on.capacity == 0 {
			continue // hidden below another mount, or hung
		}
		seen[device] = true
		all = append(all, fileSystem{device, m.Major, m.Minor, on, disks[[2]int{m.Major, m.Minor}]})
	}
	return all, nil
}

// deviceOf returns the device label of a mounted file system; false for one to omit.
func deviceOf(m *mountinfo.Info, rootDir string) (string, bool) {
	if !diskTypes[m.FSType] || strings.HasPrefix(m.Mountpoint, filepath.Join(rootDir, "pods")+"/") {
		return "", false
	}
	switch m.FSType {
	case "overlay": // the node's root; any other is a container's
		return "overlay_" + strconv.Itoa(m.Major) + "-" + strconv.Itoa(m.Minor), m.Mountpoint == "/"
	case "tmpfs": // has no device; in a container's directory it is its /dev/shm
		return m.Mountpoint, !inContainerDir(m.Mountpoint)
	}
	return m.Source, true
}

// inContainerDir reports whether a path has the ID of a container or sandbox in it.
func inContainerDir(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if len(part) == 64 && strings.Trim(part, "0123456789abcdef") == "" {
			return true
		}
	}
	return false
}

func readDiskTraffic(s *fileReader) (map[[2]int]diskTraffic, error) {
	text, err := s.read("/proc/diskstats")
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseDiskTraffic(text), nil
}

// parseDiskTraffic parses /proc/diskstats: major, minor, name, then the counters.
func parseDiskTraffic(text []byte) map[[2]int]diskTraffic {
	disks := map[[2]int]diskTraffic{}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 14 {
			continue
		}
		var d diskTraffic
		for i, into := range []*uint64{
			&d.reads, &d.readsMerged, &d.sectorsRead, &d.readMillis,
			&d.writes, &d.writesMerged, &d.sectorsWritten, &d.writeMillis,
			&d.running, &d.busyMillis, &d.weightedMillis,
		} {
			*into, _ = parseUint(fields[3+i])
		}
		major, _ := parseUint(fields[0])
		minor, _ := parseUint(fields[1])
		disks[[2]int{int(major), int(minor)}] = d
	}
	return disks
}
