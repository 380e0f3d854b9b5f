// Package content is the frame of all volumes that hold files made by the agent: collect
// the files, make the space, write them at once.
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

// Files is what a volume is to hold now.
type Files struct {
	Payload atomicdir.Payload
	// RefreshAt is when it must be collected again, zero for never.
	RefreshAt time.Time
}

// Kind is what tells one such plugin from another.
type Kind struct {
	Name    string
	Medium  v1.StorageMedium
	Handles func(v *v1.Volume) bool
	Collect func(ctx context.Context, r plugin.Request) (Files, error)
}

// Deps is what the frame works with.
type Deps struct {
	Ground *emptydir.Plugin
	Clock  clock.PassiveClock
}

// Plugin brings up one kind of file volume.
type Plugin struct {
	kind Kind
	deps Deps
}

// New makes a plugin of the kind.
func New(kind Kind, deps Deps) *Plugin { return &Plugin{kind, deps} }

func (p *Plugin) Name() string { return p.kind.Name }

func (p *Plugin) Handles(s plugin.Spec) bool { return s.PV == nil && p.kind.Handles(s.Volume) }

// SetUp collects before it makes anything, so that a missing object leaves no trace.
func (p *Plugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	files, err := p.kind.Collect(ctx, r)
	if err != nil {
		return plugin.Result{}, err
	}
	dir := r.VolumeDir(p.kind.Name)
	// The note's name is the reference kubelet's: either agent finds the other's volumes ready.
	ground := emptydir.Ground{Medium: p.kind.Medium, Note: "wrapped_" + r.Volume.Name}
	if err := p.deps.Ground.Prepare(r, dir, ground); err != nil {
		return plugin.Result{}, err
	}
	if err := makeNested(r, dir); err != nil {
		return plugin.Result{}, err
	}
	var own func() error
	if group := r.FSGroup(); group != nil {
		own = func() error { return ownership.Apply(dir, ownership.Group{ID: *group, ReadOnly: true}) }
	}
	if err := atomicdir.Write(dir, files.Payload, p.deps.Clock.Now(), own); err != nil {
		return plugin.Result{}, err
	}
	return plugin.Result{HostPath: dir, ReadOnly: true, SELinuxRelabel: true, RefreshAt: files.RefreshAt}, nil
}
