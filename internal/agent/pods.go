package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/desired"
	"swiftlet/internal/host"
	"swiftlet/internal/image/credentialplugin"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/server/sockets"
	"swiftlet/internal/source"
	"swiftlet/internal/status"
	"swiftlet/internal/syncloop"
)

// pods has the parts on the path of a pod, from its source to its status.
type pods struct {
	running
	states
	syncing
	protection
	admission
	sockets *sockets.Server
	loop    *syncloop.Loop
}

// newPods builds the path from its end to its beginning: each part depends on those after it.
func newPods(b *base, a *api, r runtimeClient, m *machine, plugins *credentialplugin.Plugins) (p *pods, err error) {
	amounts, err := allocation.OpenStates(b.cfg.Flags.RootDir, b.log)
	if err != nil {
		return nil, err
	}
	p = &pods{}
	if p.running, err = newRunning(b, a, r, m, plugins); err != nil {
		return nil, err
	}
	if p.states, err = newStates(b, a); err != nil {
		return nil, err
	}
	if p.syncing, err = newSyncing(b, a, r, m, p.running, p.states, amounts); err != nil {
		return nil, err
	}
	if p.protection, err = newProtection(b, a, r, m, p.running, p.states, p.syncing); err != nil {
		return nil, err
	}
	if p.admission, err = newAdmission(b, a, m, p.running, p.states, p.syncing, p.protection, amounts); err != nil {
		return nil, err
	}
	if p.sockets, err = newSockets(b, m, p.running, p.states, p.syncing); err != nil {
		return nil, err
	}
	snapshots := make(chan pod.Snapshot)
	if err := newSources(b, a, p, snapshots); err != nil {
		return nil, err
	}
	known := func(uid types.UID) bool {
		_, desired := p.desired.Get(uid)
		return desired || p.workers.Known(uid)
	}
	housekeeper, err := newHousekeeper(b, m, p.running, p.states, p.syncing, known)
	if err != nil {
		return nil, err
	}
	p.loop, err = syncloop.New(syncloop.Deps{
		Snapshots: snapshots, Desired: p.desired, Admission: p.Admission, Workers: p.workers,
		Observer: p.observer, Probed: p.probes.Changes(), OnChange: b.metrics.PodChanged, OnHandled: p.sockets.Notify,
		OnRelist: func() { p.status.Relisted(p.desired.List()) }, Clock: b.clock, Log: b.log,
		Housekeep: func(ctx context.Context) { amounts.Retain(known); housekeeper.Notify(ctx) },
	})
	return p, b.addUnless(err, "sync loop", p.loop.Run)
}

// states has the desired pods and the publisher of their status.
type states struct {
	desired *desired.Pods
	mirrors *desired.Mirrors // nil without an API server
	status  *status.Publisher
}

func newStates(b *base, a *api) (s states, err error) {
	s.desired, err = desired.New(desired.Config{
		Sources: source.NamesFrom(&b.cfg.Kubelet, a.clients == nil), Fields: pod.NewGatedFields(b.cfg.Gate),
	}, desired.Deps{Clock: b.clock})
	if err != nil {
		return s, err
	}
	deps := status.Deps{Mirror: s.desired.MirrorOf, Clock: b.clock, Jitter: b.around.Random, Panics: b.panics, Meters: b.metrics.Status(), Log: b.log}
	if c := a.clients; c != nil {
		deps.Client = status.NewClient(c.Kube.Core())
		s.mirrors, err = desired.NewMirrors(desired.MirrorConfig{NodeName: b.nodeName}, desired.MirrorDeps{Client: c.Kube, NodeUID: a.caches.Node.UID})
		if err != nil {
			return s, err
		}
	}
	s.status, err = status.New(status.Config{}, deps)
	b.hub.apiServerBack.Subscribe(func(struct{}) { s.status.Retry() })
	err = b.addUnless(err, "memory", host.ReturnMemory(b.around.Memory, s.status.Subscribe, b.clock, b.log))
	return s, b.addUnless(err, "status", s.status.Run)
}
