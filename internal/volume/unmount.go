package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/safepath"
)

// subPathsDir is the directory of a pod that holds the mounts of subPaths.
const subPathsDir = "volume-subpaths"

// ownDirs are the parts of a pod's directory that this package makes and removes, in the
// order of removal: what is mounted from a volume goes before the volume.
var ownDirs = []string{subPathsDir, plugin.DevicesDir, plugin.VolumesDir, plugin.MetaDir}

func (v *Volumes) makePodDirs(uid types.UID) error {
	for _, dir := range []string{plugin.VolumesDir, plugin.MetaDir} {
		if err := os.MkdirAll(filepath.Join(v.podDir(uid), dir), 0o750); err != nil {
			return fmt.Errorf("make pod directory: %w", err)
		}
	}
	return nil
}

// Unmount takes away everything that is mounted or written for the pod's volumes, by what
// the mount table and the disk show, so that it also works for a pod that an earlier run
// of the agent mounted. Call it when no container runs any more. It waits for operations
// that are under way on the pod, is idempotent, and removes nothing through a mount: if
// one does not let go, all that lies beneath it stays.
func (v *Volumes) Unmount(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	began := v.deps.Clock.Now()
	kinds, err := v.forget(ctx, uid)
	if err == nil {
		err = v.remove(ctx, uid)
	}
	for _, kind := range kinds {
		v.measure(kind, OperationUnmount, began, err)
	}
	return err
}

// remove takes away what the mount table and the disk show of the pod's volumes.
func (v *Volumes) remove(ctx context.Context, uid types.UID) error {
	if err := v.takeDown(ctx, uid); err != nil {
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
	v.tidyQuotas()
	v.leave(uid)
	return nil
}

// tidyQuotas takes back what counted volumes that are gone, of an earlier agent, too.
func (v *Volumes) tidyQuotas() {
	if v.deps.Quotas != nil {
		v.deps.Quotas.ReleaseStale()
	}
}

// forget drops what is known of the pod, after the last operation on it has ended. It
// returns the kinds of the volumes that were mounted.
func (v *Volumes) forget(ctx context.Context, uid types.UID) (kinds []string, err error) {
	v.mu.Lock()
	pv := v.pods[uid]
	var states []*mountState
	if pv != nil {
		pv.end()
		for name, state := range pv.volumes {
			v.due.remove(volumeKey{pod: uid, volume: name})
			v.due.remove(volumeKey{pod: uid, volume: name, size: true})
			v.due.remove(volumeKey{pod: uid, volume: name, health: true})
			states = append(states, state)
			if state.mounted {
				kinds = append(kinds, state.up.qualifiedKind())
			}
		}
	}
	v.mu.Unlock()
	for _, state := range states {
		if err := state.take(ctx); err != nil {
			return kinds, fmt.Errorf("wait for the last operation on a volume of pod %s: %w", uid, err)
		}
		state.release() // with gone done, nobody begins anything
	}
	v.mu.Lock()
	if v.pods[uid] == pv {
		delete(v.pods, uid)
	}
	v.mu.Unlock()
	if v.deps.Tokens != nil {
		v.deps.Tokens.Forget(uid)
	}
	if v.deps.Certificates != nil {
		v.deps.Certificates.Forget(uid)
	}
	return kinds, nil
}

// RemovePodDir removes the pod's whole directory. It refuses while anything is mounted in it.
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

// PodDirs lists the pods that have a directory on this node, wanted or not.
func (v *Volumes) PodDirs() ([]types.UID, error) {
	return v.list(func(types.UID) bool { return true })
}

// MountedPods lists the pods that have anything left for Unmount to take away.
func (v *Volumes) MountedPods() ([]types.UID, error) {
	return v.list(func(uid types.UID) bool {
		for _, own := range ownDirs {
			if _, err := os.Lstat(filepath.Join(v.podDir(uid), own)); err == nil {
				return true
			}
		}
		return false
	})
}

func (v *Volumes) list(keep func(types.UID) bool) ([]types.UID, error) {
	entries, err := os.ReadDir(filepath.Join(v.cfg.RootDir, "pods"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pod directories: %w", err)
	}
	var uids []types.UID
	for _, e := range entries {
		if uid := types.UID(e.Name()); e.IsDir() && keep(uid) {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// checkUID keeps a wrong identity from naming a directory that is no pod's.
func checkUID(uid types.UID) error {
	if name := string(uid); name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return fmt.Errorf("pod identity %q names no directory", uid)
	}
	return nil
}
