package path

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/image"
	"swiftlet/internal/volume"
	"swiftlet/internal/volume/csi"
	"swiftlet/internal/volume/mounts"
	"swiftlet/internal/volume/plugin"
)

// faults are what goes wrong on a node outside its runtime. All may be nil. Objects are read when the agent
// starts, the others whenever they matter.
type faults struct {
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
	// claim and persistentVolume are the node's only ones; claimError fails to read them.
	claim            *v1.PersistentVolumeClaim
	persistentVolume *v1.PersistentVolume
	claimError       error

	network, resources, credentials error
	cgroup, removeCgroup            error
	// volume is called to mount volumes of type cephfs, unmount to unmount the volumes of any pod.
	volume, unmount func(context.Context) error
}

// fault reads a fault.
func (w *testNode) fault(of func(*faults) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return of(&w.faults)
}

func (w *testNode) setFaults(change func(*faults)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.faults)
}

func (w *testNode) credentials(context.Context, *v1.Pod, string) ([]image.Credential, error) {
	return nil, w.fault(func(f *faults) error { return f.credentials })
}

// plugins are a CSI plugin without drivers and one that returns configured errors.
func (w *testNode) plugins(log *slog.Logger) []plugin.Plugin {
	withoutDrivers, err := csi.New(csi.Config{RootDir: w.root, NodeName: "node"}, csi.Deps{Mounts: &mounts.Kernel{}, Clock: w.clock, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	return []plugin.Plugin{withoutDrivers, faultyPlugin{w}}
}

// faultyPlugin mounts volumes of a type that the agent does not know any more.
type faultyPlugin struct{ w *testNode }

func (faultyPlugin) Name() string               { return "test/faulty" }
func (faultyPlugin) Handles(s plugin.Spec) bool { return s.Volume != nil && s.Volume.CephFS != nil }

func (p faultyPlugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	p.w.mu.Lock()
	mount := p.w.faults.volume
	p.w.mu.Unlock()
	if mount != nil {
		if err := mount(ctx); err != nil {
			return plugin.Result{}, err
		}
	}
	return plugin.Result{HostPath: filepath.Join(p.w.root, "faulty")}, nil
}

// claims are nil unless the node has one: then the agent has an API server.
func (w *testNode) claims() volume.Claims {
	if w.faults.claim == nil && w.faults.claimError == nil {
		return nil
	}
	return claims{w}
}

type claims struct{ w *testNode }

func (c claims) Claim(_ context.Context, _, name string) (*v1.PersistentVolumeClaim, error) {
	switch f := &c.w.faults; {
	case f.claimError != nil:
		return nil, f.claimError
	case f.claim.Name != name:
		return nil, apierrors.NewNotFound(v1.Resource("persistentvolumeclaims"), name)
	}
	return c.w.faults.claim, nil
}

func (c claims) Volume(_ context.Context, name string) (*v1.PersistentVolume, error) {
	if c.w.faults.persistentVolume == nil {
		return nil, apierrors.NewNotFound(v1.Resource("persistentvolumes"), name)
	}
	return c.w.faults.persistentVolume, nil
}

func (c claims) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	return nil, apierrors.NewNotFound(v1.Resource("secrets"), name)
}

// faultyVolumes returns a configured error from Unmount.
type faultyVolumes struct {
	*volume.Volumes
	w *testNode
}

func (v faultyVolumes) Unmount(ctx context.Context, uid types.UID) error {
	v.w.mu.Lock()
	unmount := v.w.faults.unmount
	v.w.mu.Unlock()
	if unmount != nil {
		if err := unmount(ctx); err != nil {
			return err
		}
	}
	return v.Volumes.Unmount(ctx, uid)
}

// faultyCgroups returns configured errors.
type faultyCgroups struct {
	*cgroups
	w *testNode
}

func (c faultyCgroups) EnsurePod(p *v1.Pod) error {
	if err := c.w.fault(func(f *faults) error { return f.cgroup }); err != nil {
		return err
	}
	return c.cgroups.EnsurePod(p)
}

func (c faultyCgroups) RemovePod(ctx context.Context, uid types.UID) error {
	if err := c.w.fault(func(f *faults) error { return f.removeCgroup }); err != nil {
		return err
	}
	return c.cgroups.RemovePod(ctx, uid)
}

// hang does not return before its context ends.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// failWith returns a fault that always has this error.
func failWith(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

var errTest = errors.New("as the test wants")

// rejectWith rejects pods of this name on admission.
func (w *testNode) rejectWith(name, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rejects[name] = reason
}
