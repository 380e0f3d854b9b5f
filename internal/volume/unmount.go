package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/contain"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/safepath"
)

// subPathsDir is the subdirectory of a pod's directory with the bind mounts of subPaths.
const subPathsDir = "volume-subpaths"

// ownDirs are the subdirectories of a pod's directory that this package creates and removes, in the
// order of removal: bind mounts of a volume before the volume.
var ownDirs = []string{subPathsDir, plugin.DevicesDir, plugin.VolumesDir, plugin.MetaDir}

func (v *Volumes) makePodDirs(uid types.UID) error {
	for _, dir := range []string{plugin.VolumesDir, plugin.MetaDir} {
		if err := os.MkdirAll(filepath.Join(v.podDir(uid), dir), 0o750); err != nil {
			return fmt.Errorf("create pod directory: %w", err)
		}
	}
	return nil
}

// Unmount unmounts and removes all volumes of the pod, from what the mount table and the disk show, so
// that it works for a pod that an earlier agent mounted. Call it when no container runs any more. It
// waits for the current operations on the pod, is idempotent, and removes nothing through a mount
// point: everything beneath a busy mount stays. A file system that does not answer is reported as an event,
// and an error at the timeout of Mount.
func (v *Volumes) Unmount(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.cfg.MountTimeout)
	defer cancel()
	v.mu.Lock()
	pv := v.pods[uid]
	v.mu.Unlock()
	began := v.deps.Clock.Now()
	var kinds []string
	err := v.unmountInTime(ctx, uid, pv, func() (err error) {
		if kinds, err = v.forgetPod(ctx, uid); err != nil {
			return err
		}
		return v.remove(ctx, uid)
	})
	if !errors.As(err, new(*contain.HangError)) { // else they are not ours
		for _, kind := range kinds {
			v.observeOperation(kind, OperationUnmount, began, err)
		}
	}
	return err
}

// unmountInTime calls unmount, which may hang in the kernel, until ctx is done. After HangTimeout it records an
// event and continues to wait. pv may be nil.
func (v *Volumes) unmountInTime(ctx context.Context, uid types.UID, pv *podVolumes, unmount func() error) error {
	name := "unmount volumes of pod " + string(uid)
	patience, cancel := context.WithTimeout(ctx, v.cfg.HangTimeout)
	defer cancel()
	err := v.unmounts.Do(patience, name, unmount)
	if !errors.As(err, new(*contain.HangError)) || ctx.Err() != nil {
		return err
	}
	v.recordHungUnmount(uid, pv)
	return v.unmounts.Do(ctx, name, unmount) // waits for the first
}

// remove tears down and removes the pod's volumes from what the mount table and the disk show.
func (v *Volumes) remove(ctx context.Context, uid types.UID) error {
	if err := v.tearDownPod(ctx, uid); err != nil {
		return err
	}
	dir := v.podDir(uid)
	if err := v.deps.Mounter.UnmountBeneath(dir); err != nil {
		return fmt.Errorf("unmount volumes of pod %s: %w", uid, err)
	}
	for _, own := range ownDirs {
		if err := safepath.RemoveAll(filepath.Join(dir, own)); err != nil {
			return fmt.Errorf("remove volumes of pod %s: %w", uid, err)
		}
	}
	v.releaseStaleQuotas()
	v.releaseDevices(uid)
	return nil
}

// releaseStaleQuotas releases the project quotas of removed volumes, also those of an earlier agent.
func (v *Volumes) releaseStaleQuotas() {
	if v.deps.Quotas != nil {
		v.deps.Quotas.ReleaseStale()
	}
}

// forgetPod drops the state of the pod after its last operation has ended. It returns the plugins of the
// volumes that were mounted.
func (v *Volumes) forgetPod(ctx context.Context, uid types.UID) (kinds []string, err error) {
	v.mu.Lock()
	pv := v.pods[uid]
	var states []*mountState
	if pv != nil {
		pv.cancel()
		for name, state := range pv.volumes {
			v.due.remove(volumeKey{pod: uid, volume: name})
			v.due.remove(volumeKey{pod: uid, volume: name, size: true})
			v.due.remove(volumeKey{pod: uid, volume: name, health: true})
			states = append(states, state)
			if state.mounted {
				kinds = append(kinds, state.mountedVolume.qualifiedPlugin())
			}
		}
	}
	v.mu.Unlock()
	for _, state := range states {
		if err := state.acquire(ctx); err != nil {
			return kinds, fmt.Errorf("wait for the last operation on a volume of pod %s: %w", uid, err)
		}
		state.release() // unmounting is done, so no operation starts after it
	}
	v.mu.Lock()
	if v.pods[uid] == pv {
		delete(v.pods, uid)
	}
	v.mu.Unlock()
	v.budget.Forget(uid)
	if v.deps.Tokens != nil {
		v.deps.Tokens.Forget(uid)
	}
	if v.deps.Certificates != nil {
		v.deps.Certificates.Forget(uid)
	}
	return kinds, nil
}

// RemovePodDir removes the pod's directory. It fails while anything is mounted in it.
func (v *Volumes) RemovePodDir(uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	dir := v.podDir(uid)
	mounted, err := v.deps.Mounter.MountPoints(dir)
	if err != nil {
		return fmt.Errorf("remove directory of pod %s: %w", uid, err)
	}
	if len(mounted) > 0 {
		return fmt.Errorf("remove directory of pod %s: %w", uid, &safepath.MountPointError{Path: mounted[0]})
	}
	if err := safepath.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove directory of pod %s: %w", uid, err)
	}
	return nil
}

// PodDirs lists the pods that have a directory on this node.
func (v *Volumes) PodDirs() ([]types.UID, error) {
	return v.listPods(func(types.UID) bool { return true })
}

// MountedPods lists the pods that have volumes for Unmount to remove.
func (v *Volumes) MountedPods() ([]types.UID, error) {
	return v.listPods(func(uid types.UID) bool {
		for _, own := range ownDirs {
			if _, err := os.Lstat(filepath.Join(v.podDir(uid), own)); err == nil {
				return true
			}
		}
		return false
	})
}

func (v *Volumes) listPods(selected func(types.UID) bool) ([]types.UID, error) {
	entries, err := os.ReadDir(filepath.Join(v.cfg.RootDir, "pods"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pod directories: %w", err)
	}
	var uids []types.UID
	for _, e := range entries {
		if uid := types.UID(e.Name()); e.IsDir() && selected(uid) {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// checkUID rejects a UID that is not the name of a pod's directory.
func checkUID(uid types.UID) error {
	if name := string(uid); name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return fmt.Errorf("invalid pod UID %q", uid)
	}
	return nil
}
