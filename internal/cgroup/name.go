package cgroup

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// name is a group's place in the tree, from the root down, without the spelling that a
// driver gives it: {"kubepods", "burstable", "pod0a1b-2c"}.
type name []string

const (
	topGroup   = "kubepods"
	podPrefix  = "pod"
	slice      = ".slice"
	burstable  = "burstable"
	besteffort = "besteffort"
)

// parseRoot reads the configured cgroup root, a path.
func parseRoot(root string) name {
	var n name
	for part := range strings.SplitSeq(root, "/") {
		if part != "" {
			n = append(n, part)
		}
	}
	return n
}

func (n name) child(part string) name {
	return append(append(name(nil), n...), part)
}

// path is the group's directory below each controller's mount, starting with "/".
func (n name) path(driver Driver) string {
	if driver != Systemd {
		return "/" + path.Join(n...)
	}
	// systemd nests slices by the dashes in their names, so each level's directory
	// repeats all names above it, and a dash inside a name must be spelled otherwise.
	var dirs []string
	joined := ""
	for _, part := range n {
		part = strings.ReplaceAll(strings.TrimSuffix(part, slice), "-", "_")
		if joined != "" {
			joined += "-"
		}
		joined += part
		dirs = append(dirs, joined+slice)
	}
	return "/" + path.Join(dirs...)
}

// parent is what CRI wants as a sandbox's cgroup parent: the whole path, or for systemd
// the slice alone.
func (n name) parent(driver Driver) string {
	p := n.path(driver)
	if driver == Systemd {
		return path.Base(p)
	}
	return p
}

// podUID reads a pod's UID back from the name of a directory inside n.
func (n name) podUID(driver Driver, dir string) (types.UID, bool) {
	if driver == Systemd {
		prefix := strings.TrimSuffix(path.Base(n.path(driver)), slice) + "-"
		if len(n) == 0 || !strings.HasSuffix(dir, slice) {
			return "", false
		}
		var ok bool
		if dir, ok = strings.CutPrefix(strings.TrimSuffix(dir, slice), prefix); !ok {
			return "", false
		}
		dir = strings.ReplaceAll(dir, "_", "-")
	}
	uid, ok := strings.CutPrefix(dir, podPrefix)
	return types.UID(uid), ok && uid != ""
}
