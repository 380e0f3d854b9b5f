package eviction

import "slices"

// Layout says which file systems the node has for images and containers.
type Layout struct {
	// OwnImageFs: images are on another file system than nodefs.
	OwnImageFs bool
	// OwnContainerFs: writable layers are on another file system than images.
	OwnContainerFs bool
}

// containerFs returns the signals of the file system that containers write to.
func (l Layout) containerFs() (space, inodes Signal) {
	if l.OwnImageFs && !l.OwnContainerFs {
		return ImageFsAvailable, ImageFsInodesFree
	}
	return NodeFsAvailable, NodeFsInodesFree
}

// backing maps a signal to the first signal of the memory, disk or process IDs behind it, so
// that signals of the same resource compare equal.
func (l Layout) backing(s Signal) Signal {
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
		space, _ := l.containerFs()
		return space
	}
	return s
}

// withContainerFs gives containerfs the thresholds of the file system that it is on. They
// replace any that were configured for it, which could only contradict.
func (l Layout) withContainerFs(thresholds []Threshold) []Threshold {
	all := slices.DeleteFunc(slices.Clone(thresholds), func(t Threshold) bool {
		return t.Signal == ContainerFsAvailable || t.Signal == ContainerFsInodesFree
	})
	space, inodes := l.containerFs()
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

// storagePart is a part of a pod that uses disk space.
type storagePart int

const (
	writableLayer storagePart = iota // writable layers of its containers
	logs
	volumes
)

// storageParts are the parts of a pod that are on the signal's file system.
func (l Layout) storageParts(s Signal) []storagePart {
	image := s == ImageFsAvailable || s == ImageFsInodesFree
	container := s == ContainerFsAvailable || s == ContainerFsInodesFree
	switch {
	case !l.OwnImageFs:
		return []storagePart{writableLayer, logs, volumes}
	case l.OwnContainerFs && image:
		return nil
	case l.OwnContainerFs:
		return []storagePart{writableLayer, logs, volumes}
	case image || container:
		return []storagePart{writableLayer}
	}
	return []storagePart{logs, volumes}
}

// reclaimable says which garbage to collect before pods are evicted for the signal.
func (l Layout) reclaimable(s Signal) (containers, images bool) {
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
