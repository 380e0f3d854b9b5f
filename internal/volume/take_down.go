package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/volume/blockdev"
	"swiftlet/internal/volume/plugin"
)

// published lists by the disk what the pod has of the kind.
func (v *Volumes) published(uid types.UID, kind plugin.Plugin) ([]plugin.Published, error) {
	var all []plugin.Published
	for _, block := range []bool{false, true} {
		p := plugin.Published{PodUID: uid, PodDir: v.podDir(uid), Block: block}
		entries, err := os.ReadDir(p.Dir(kind.Name())) // without a name: the kind's directory
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, fmt.Errorf("list volumes of pod %s: %w", uid, err)
		}
		for _, e := range entries {
			p.Name = e.Name()
			all = append(all, p)
		}
	}
	return all, nil
}

// takeDown undoes, by what the disk shows, all that an unmount alone would not undo. Its
// volumes are independent of each other: one that does not let go stays, the rest goes.
func (v *Volumes) takeDown(ctx context.Context, uid types.UID) error {
	if err := v.deps.Mounter.UnmountBeneath(filepath.Join(v.podDir(uid), subPathsDir)); err != nil {
		return fmt.Errorf("unmount subPaths of pod %s: %w", uid, err)
	}
	var (
		downs sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	for _, kind := range v.kinds() {
		_, unpublisher := kind.(plugin.Unpublisher)
		_, mapper := kind.(plugin.BlockMapper)
		if !unpublisher && !mapper {
			continue
		}
		all, err := v.published(uid, kind)
		fail(err)
		for _, p := range all {
			downs.Go(func() { fail(v.takeDownOne(ctx, kind, p)) })
		}
	}
	downs.Wait()
	return errors.Join(errs...)
}

// takeDownOne takes down one volume, alone on its device.
func (v *Volumes) takeDownOne(ctx context.Context, kind plugin.Plugin, p plugin.Published) error {
	step := "UnmountVolume.TearDown"
	if p.Block {
		step = "UnmapVolume.UnmapPodDevice"
	}
	device, err := v.shareOnDisk(ctx, kind, p)
	if err != nil {
		return fmt.Errorf("%s failed for volume %q of pod %s: %w", step, p.Name, p.PodUID, err)
	}
	defer device.release()
	if err := v.undo(ctx, kind, p); err != nil {
		return fmt.Errorf("%s failed for volume %q of pod %s: %w", step, p.Name, p.PodUID, err)
	}
	return nil
}

// undo removes last what tells others of the volume: killed at any line, it is repeated.
func (v *Volumes) undo(ctx context.Context, kind plugin.Plugin, p plugin.Published) error {
	var links blockdev.Map
	mapper, ok := kind.(plugin.BlockMapper)
	mapped := ok && p.Block
	if mapped {
		var err error
		if links, err = blockMapOnDisk(kind, mapper, p); err != nil {
			return err
		}
		if err := links.Release(v.deps.Mounter); err != nil {
			return err
		}
	}
	if unpublisher, ok := kind.(plugin.Unpublisher); ok {
		if err := unpublisher.TearDown(ctx, p); err != nil {
			return err
		}
	}
	if mapped {
		return links.Unlink()
	}
	return nil
}

// shareOnDisk is share for a volume of which only the disk tells.
func (v *Volumes) shareOnDisk(ctx context.Context, kind plugin.Plugin, p plugin.Published) (*device, error) {
	stager, ok := kind.(plugin.Stager)
	if !ok {
		return nil, nil
	}
	id, err := stager.DeviceOf(p)
	if err != nil {
		// The volume must go all the same; what is left staged is found later by the disk.
		v.deps.Log.Warn("a volume's device is not known", "pod", p.PodUID, "volume", p.Name, "err", err)
		v.mu.Lock()
		v.unmatched[p.PodUID] = true
		v.mu.Unlock()
		return nil, nil
	}
	if id == "" {
		return nil, nil
	}
	v.mu.Lock()
	d := v.deviceLocked(kind, id, true)
	d.users[p.PodUID] = true
	v.mu.Unlock()
	return d, d.take(ctx)
}
