package stats

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// fileSystem is one that the node has mounted, with its disk's traffic.
type fileSystem struct {
	device string
	space
	disk diskTraffic
}

// diskTraffic is a line of /proc/diskstats.
type diskTraffic struct {
	reads, readsMerged, sectorsRead, readMillis       uint64
	writes, writesMerged, sectorsWritten, writeMillis uint64
	running, busyMillis, weightedMillis               uint64
}

// diskTypes are the file systems that store files for longer than a moment.
var diskTypes = map[string]bool{
	"btrfs": true, "ext2": true, "ext3": true, "ext4": true, "overlay": true, "tmpfs": true,
	"xfs": true, "zfs": true, "bcachefs": true, "f2fs": true,
}

// readFileSystems lists what the node has mounted, each disk once: a second mount of the
// same one is the same space. Those of pods and containers are left out. They are counted
// with their pods, and there may be thousands.
func readFileSystems(s *scratch, rootDir string) ([]fileSystem, error) {
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
		on, err := spaceOf(m.Mountpoint)
		if err != nil || on.capacity == 0 {
			continue // hidden below another mount, or hung; the others matter still
		}
		seen[device] = true
		all = append(all, fileSystem{device, on, disks[[2]int{m.Major, m.Minor}]})
	}
	return all, nil
}

// deviceOf is how a mounted file system is called; false for those that do not count.
func deviceOf(m *mountinfo.Info, rootDir string) (string, bool) {
	if !diskTypes[m.FSType] || strings.HasPrefix(m.Mountpoint, filepath.Join(rootDir, "pods")+"/") {
		return "", false
	}
	switch m.FSType {
	case "overlay": // the node's own root; any other is a container's
		return "overlay_" + strconv.Itoa(m.Major) + "-" + strconv.Itoa(m.Minor), m.Mountpoint == "/"
	case "tmpfs": // has no device; inside a container's folder it is its /dev/shm
		return m.Mountpoint, !ofContainer(m.Mountpoint)
	}
	return m.Source, true
}

// ofContainer finds the id of a container or a sandbox in a path.
func ofContainer(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if len(part) == 64 && strings.Trim(part, "0123456789abcdef") == "" {
			return true
		}
	}
	return false
}

func readDiskTraffic(s *scratch) (map[[2]int]diskTraffic, error) {
	text, err := s.read("/proc/diskstats")
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseDiskTraffic(text), nil
}

// parseDiskTraffic reads /proc/diskstats: major, minor, name, then the counters.
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
