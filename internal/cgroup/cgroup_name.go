package cgroup

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// cgroupName is the path of a cgroup from the root, independent of the driver:
// {"kubepods", "burstable", "pod0a1b-2c"}.
type cgroupName []string

const (
	kubepodsName = "kubepods"
	podPrefix    = "pod"
	sliceSuffix  = ".slice"
	burstable    = "burstable"
	besteffort   = "besteffort"
)

// parsePath parses a path, such as the configured cgroup root.
func parsePath(root string) cgroupName {
	var n cgroupName
	for part := range strings.SplitSeq(root, "/") {
		if part != "" {
			n = append(n, part)
		}
	}
	return n
}

func (n cgroupName) child(part string) cgroupName {
	return append(append(cgroupName(nil), n...), part)
}

// path returns the directory below each controller's mount, starting with "/".
func (n cgroupName) path(driver Driver) string {
	if driver != Systemd {
		return "/" + path.Join(n...)
	}
	// systemd derives a slice's parent from the dashes in its name. So the name of each level
	// begins with those above it, and a dash within a name is escaped as "_".
	var dirs []string
	joined := ""
	for _, part := range n {
		part = strings.ReplaceAll(strings.TrimSuffix(part, sliceSuffix), "-", "_")
		if joined != "" {
			joined += "-"
		}
		joined += part
		dirs = append(dirs, joined+sliceSuffix)
	}
	return "/" + path.Join(dirs...)
}

// criParent returns the cgroup parent for CRI's sandbox configuration: the whole path, or with
// systemd the name of the slice.
func (n cgroupName) criParent(driver Driver) string {
	p := n.path(driver)
	if driver == Systemd {
		return path.Base(p)
	}
	return p
}

// podUID parses the pod UID from the name of a directory in n. It returns false for others.
func (n cgroupName) podUID(driver Driver, dir string) (types.UID, bool) {
	if driver == Systemd {
		prefix := strings.TrimSuffix(path.Base(n.path(driver)), sliceSuffix) + "-"
		if len(n) == 0 || !strings.HasSuffix(dir, sliceSuffix) {
			return "", false
		}
		var ok bool
		if dir, ok = strings.CutPrefix(strings.TrimSuffix(dir, sliceSuffix), prefix); !ok {
			return "", false
		}
		dir = strings.ReplaceAll(dir, "_", "-")
	}
	uid, ok := strings.CutPrefix(dir, podPrefix)
	return types.UID(uid), ok && uid != ""
}
