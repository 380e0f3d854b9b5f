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

	"swiftlet/internal/contain"
	"swiftlet/internal/volume/blockdev"
	"swiftlet/internal/volume/plugin"
)

// published lists the pod's volumes of the plugin from what is on disk.
func (v *Volumes) published(uid types.UID, kind plugin.Plugin) ([]plugin.Published, error) {
	var all []plugin.Published
	for _, block := range []bool{false, true} {
		p := plugin.Published{PodUID: uid, PodDir: v.podDir(uid), Block: block}
		entries, err := os.ReadDir(p.Dir(kind.Name())) // without a name: the plugin's directory
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

// tearDownPod tears down all volumes on disk that need more than an unmount. They are independent: one
// that fails does not keep the others.
func (v *Volumes) tearDownPod(ctx context.Context, uid types.UID) error {
	if err := v.deps.Mounter.UnmountBeneath(filepath.Join(v.podDir(uid), subPathsDir)); err != nil {
		return fmt.Errorf("unmount subPaths of pod %s: %w", uid, err)
	}
	var (
		tasks sync.WaitGroup
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
			tasks.Go(func() { fail(contain.Call(func() error { return v.tearDownVolume(ctx, kind, p) })) })
		}
	}
	tasks.Wait()
	return errors.Join(errs...)
}

// tearDownVolume tears down one volume, with its device locked.
func (v *Volumes) tearDownVolume(ctx context.Context, kind plugin.Plugin, p plugin.Published) error {
	step := "UnmountVolume.TearDown"
	if p.Block {
		step = "UnmapVolume.UnmapPodDevice"
	}
	device, err := v.acquireDeviceOnDisk(ctx, kind, p)
	if err != nil {
		return fmt.Errorf("%s failed for volume %q of pod %s: %w", step, p.Name, p.PodUID, err)
	}
	defer device.release()
	if err := v.undoMount(ctx, kind, p); err != nil {
		return fmt.Errorf("%s failed for volume %q of pod %s: %w", step, p.Name, p.PodUID, err)
	}
	return nil
}

// undoMount removes last what shows that the volume exists: after a crash it is repeated.
func (v *Volumes) undoMount(ctx context.Context, kind plugin.Plugin, p plugin.Published) error {
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

// acquireDeviceOnDisk is acquireDevice for a volume that was found on disk.
func (v *Volumes) acquireDeviceOnDisk(ctx context.Context, kind plugin.Plugin, p plugin.Published) (*device, error) {
	stager, ok := kind.(plugin.Stager)
	if !ok {
		return nil, nil
	}
	id, err := stager.DeviceOf(p)
	if err != nil {
		// Tear down the volume nevertheless; its device is found on disk later.
		v.deps.Log.Warn("tear down volume: cannot determine device", "podUID", p.PodUID, "volume", p.Name, "err", err)
		v.mu.Lock()
		v.unknownDevices[p.PodUID] = true
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
	return d, d.acquire(ctx)
}
