// Package content implements volumes whose files the agent writes: it collects the files, prepares
// the directory and writes them atomically.
package content

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/emptydir"
	"swiftlet/internal/volume/ownership"
	"swiftlet/internal/volume/plugin"
)

// Files is the desired content of a volume.
type Files struct {
	Payload atomicdir.Payload
	// RefreshAt is when the files must be collected again, zero for never.
	RefreshAt time.Time
}

// Kind is what differs between these plugins.
type Kind struct {
	Name    string
	Medium  v1.StorageMedium
	Handles func(v *v1.Volume) bool
	Collect func(ctx context.Context, r plugin.Request) (Files, error)
}

// Deps are the dependencies that these plugins have in common.
type Deps struct {
	EmptyDir *emptydir.Plugin
	Clock    clock.PassiveClock
	Budget   *Budget
}

// Plugin mounts one kind of these volumes.
type Plugin struct {
	kind Kind
	deps Deps
}

// New makes a plugin of the kind.
func New(kind Kind, deps Deps) *Plugin { return &Plugin{kind, deps} }

func (p *Plugin) Name() string { return p.kind.Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV == nil && p.kind.Handles(s.Volume) }

// SetUp collects the files first, so that a missing object, or too large ones, leave nothing behind.
func (p *Plugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	files, err := p.kind.Collect(ctx, r)
	if err != nil {
		return plugin.Result{}, err
	}
	if err := p.deps.Budget.take(r.Pod.UID, r.Volume.Name, files.Payload); err != nil {
		return plugin.Result{}, err
	}
	dir := r.VolumeDir(p.kind.Name)
	// The name is that of the reference kubelet: either agent finds the other's volumes ready.
	space := emptydir.Spec{Medium: p.kind.Medium, MetaName: "wrapped_" + r.Volume.Name}
	if err := p.deps.EmptyDir.Prepare(r, dir, space); err != nil {
		return plugin.Result{}, err
	}
	if err := makeNested(r, dir); err != nil {
		return plugin.Result{}, err
	}
	var own func() error
	if group := r.FSGroup(); group != nil {
		own = func() error { return r.ChangeGroup(dir, ownership.Group{ID: *group, ReadOnly: true}) }
	}
	if err := atomicdir.Write(dir, files.Payload, p.deps.Clock.Now(), own); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, ReadOnly: true, SELinuxRelabel: true, RefreshAt: files.RefreshAt}, nil
}
