package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/contain"
	"swiftlet/internal/volume/safepath"
	"swiftlet/internal/why"
)

// subPathRequest is one volumeMount with a subPath.
type subPathRequest struct {
	pod               types.UID
	volume, container string
	index             int // of the volumeMount, to make the target unique
	volumePath, path  string
}

// bindSubPathInTime is bindSubPath, which hangs if the volume's file system does not answer. The call is then
// abandoned: neither the end of the pod nor that of the agent waits for it.
func (v *Volumes) bindSubPathInTime(ctx context.Context, r subPathRequest) (string, error) {
	limited, cancel := context.WithTimeout(ctx, v.cfg.HangTimeout)
	defer cancel()
	v.mu.Lock()
	pv := v.pods[r.pod]
	v.mu.Unlock()
	if pv == nil {
		return "", v.subPathError("prepare subPath", r, errUnmounting)
	}
	name := fmt.Sprintf("prepare subPath %d of volume %s for container %s", r.index, r.volume, r.container)
	target, err := contain.Await(limited, &pv.subPaths, name, func() (string, error) { return v.bindSubPath(r) })
	var hang *contain.HangError
	switch {
	case !errors.As(err, &hang):
		return target, err
	case ctx.Err() != nil:
		return "", fmt.Errorf("prepare subPath for volumeMount %q of container %q: %w", r.volume, r.container, ctx.Err())
	}
	v.deps.Log.Error("subPath hangs", "podUID", r.pod, "container", r.container, "volume", r.volume, "subPath", r.path, "after", v.cfg.HangTimeout)
	return "", why.Because(why.NoAnswer, "", fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: its file system does not answer", r.volume, r.container))
}

// bindSubPath creates the subPath if it is missing, bind mounts it in the pod's directory and returns
// the mount point. The pod may change the volume at the same time: the kernel resolves the path beneath
// the volume to a descriptor, which is then mounted. The error contains no path of the node, because
// users of the pod see it.
func (v *Volumes) bindSubPath(r subPathRequest) (string, error) {
	root, err := safepath.OpenRoot(r.volumePath)
	if err != nil {
		return "", v.subPathError("prepare subPath", r, err)
	}
	defer root.Close()
	source, err := safepath.OpenBeneath(root, r.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSubPath(root, r.path); err != nil {
			return "", v.subPathError("create subPath directory", r, err)
		}
		source, err = safepath.OpenBeneath(root, r.path)
	}
	if err != nil {
		return "", v.subPathError("prepare subPath", r, err)
	}
	defer source.Close()
	if v.unmounting(r.pod) { // it has hung meanwhile
		return "", v.subPathError("prepare subPath", r, errUnmounting)
	}
	target := filepath.Join(v.podDir(r.pod), subPathsDir, r.volume, r.container, strconv.Itoa(r.index))
	if err := v.bindTo(source, target); err != nil {
		return "", v.subPathError("prepare subPath", r, err)
	}
	return target, nil
}

func (v *Volumes) subPathError(what string, r subPathRequest, err error) error {
	v.deps.Log.Error("failed to mount subPath", "podUID", r.pod, "container", r.container, "volume", r.volume, "subPath", r.path, "err", err)
	return why.Because(why.SubPathInvalid, fmt.Sprintf("volumeMounts[%d].subPath %q of container %s", r.index, r.path, r.container),
		fmt.Errorf("failed to %s for volumeMount %q of container %q", what, r.volume, r.container))
}

// makeSubPath creates missing directories with the mode of the volume's root and, by the setgid bit, its
// group.
func makeSubPath(root *os.File, path string) error {
	info, err := root.Stat()
	if err != nil {
		return err
	}
	return safepath.MkdirAll(root, path, info.Sys().(*syscall.Stat_t).Mode&0o7777)
}

// bindTo bind mounts source at target, unless it is mounted there.
func (v *Volumes) bindTo(source *os.File, target string) error {
	mounted, err := v.deps.Mounter.Mounted(target)
	if err != nil {
		return err
	}
	if mounted {
		if sameFile(source, target) {
			return nil
		}
		// The subPath was replaced since the last start of the container, or its file system is gone.
		if err := v.deps.Mounter.Unmount(target); err != nil {
			return err
		}
	}
	if err := makeTarget(source, target); err != nil {
		return err
	}
	return v.deps.Mounter.Bind(int(source.Fd()), target)
}

func sameFile(source *os.File, target string) bool {
	a, err := source.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(target)
	return err == nil && os.SameFile(a, b)
}

// makeTarget creates the mount point: a directory for a directory, a file for anything else.
func makeTarget(source *os.File, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	info, err := source.Stat()
	if err != nil {
		return err
	}
	// A mount point of the other type is left from before the subPath changed its type; it is empty.
	if old, err := os.Lstat(target); err == nil && old.IsDir() != info.IsDir() {
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if info.IsDir() {
		if err := os.Mkdir(target, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
