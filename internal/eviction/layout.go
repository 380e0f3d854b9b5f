package eviction

import "slices"

// Layout says which of the node's files lie on which file system.
type Layout struct {
	// OwnImageFs: images do not lie where the agent's own files do.
	OwnImageFs bool
	// OwnContainerFs: what containers write does not lie where images do.
	OwnContainerFs bool
}

// home is the file system that containers write to: its signals for space and inodes.
func (l Layout) home() (space, inodes Signal) {
	if l.OwnImageFs && !l.OwnContainerFs {
		return ImageFsAvailable, ImageFsInodesFree
	}
	return NodeFsAvailable, NodeFsInodesFree
}

// place is what a signal is about: memory, a disk or process ids, by the name of its first
// signal.
func (l Layout) place(s Signal) Signal {
	switch s {
	case AllocatableMemoryAvailable:
		return MemoryAvailable
	case NodeFsInodesFree:
		return NodeFsAvailable
	case ImageFsAvailable, ImageFsInodesFree:
		if l.OwnImageFs {
			return ImageFsAvailable
		}
		return NodeFsAvailable
	case ContainerFsAvailable, ContainerFsInodesFree:
		space, _ := l.home()
		return space
	}
	return s
}

// complete gives containers' file system the thresholds of the one that it is, in place of
// any that were configured for it: they could only contradict.
func (l Layout) complete(thresholds []Threshold) []Threshold {
	all := slices.DeleteFunc(slices.Clone(thresholds), func(t Threshold) bool {
		return t.Signal == ContainerFsAvailable || t.Signal == ContainerFsInodesFree
	})
	space, inodes := l.home()
	for _, t := range all {
		switch t.Signal {
		case space:
			t.Signal = ContainerFsAvailable
		case inodes:
			t.Signal = ContainerFsInodesFree
		default:
			continue
		}
		all = append(all, t)
	}
	return sorted(all)
}

// part is something of a pod that takes disk space.
type part int

const (
	writable part = iota // what its containers have written
	logs
	volumes
)

// parts are those of a pod that lie on the signal's file system.
func (l Layout) parts(s Signal) []part {
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	container := s == ContainerFsAvailable || s == ContainerFsInodesFree
	switch {
	case !l.OwnImageFs:
		return []part{writable, logs, volumes}
	case l.OwnContainerFs && image:
		return nil
	case l.OwnContainerFs:
		return []part{writable, logs, volumes}
	case image || container:
		return []part{writable}
	}
	return []part{logs, volumes}
}

// spare says what may be removed before pods are evicted for the signal.
func (l Layout) spare(s Signal) (containers, images bool) {
	switch s {
	case NodeFsAvailable, NodeFsInodesFree:
		return !l.OwnImageFs || l.OwnContainerFs, !l.OwnImageFs
	case ImageFsAvailable, ImageFsInodesFree:
		return !l.OwnImageFs || !l.OwnContainerFs, true
	case ContainerFsAvailable, ContainerFsInodesFree:
		return true, !l.OwnImageFs || !l.OwnContainerFs
	}
	return false, false
}
