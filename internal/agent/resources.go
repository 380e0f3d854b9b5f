package agent

import (
	"context"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/allocation"
)

// makeResources reads what pods were given, and have, from where the reference kubelet
// keeps it.
func (a *Agent) makeResources() (err error) {
	root := a.cfg.Flags.RootDir
	if a.pods.allocated, err = allocation.Open(filepath.Join(root, allocation.Allocated)); err != nil {
		return err
	}
	a.pods.actuated, err = allocation.Open(filepath.Join(root, allocation.Actuated))
	return err
}

// known reports whether anybody wants the pod, or has still to do with it.
func (a *Agent) known(uid types.UID) bool {
	_, wanted := a.pods.desired.Get(uid)
	return wanted || a.pods.workers.Known(uid)
}

// housekeep drops what is written down of pods that went while no agent ran, too.
func (a *Agent) housekeep(ctx context.Context) {
	a.pods.allocated.Retain(a.known)
	a.pods.actuated.Retain(a.known)
	a.pods.keeper.Poke(ctx)
}

// removed takes back what was given to a pod of which nothing is left.
func (a *Agent) removed(uid types.UID) {
	a.pods.users.Release(uid)
	a.pods.allocator.Forget(uid)
}

// memoryUsage reads the kernel's count of a pod, and the runtime's of its containers.
type memoryUsage struct {
	cgroups podCgroups
	cri     *cri.Client
}

func (m memoryUsage) Memory(ctx context.Context, p *v1.Pod, observed *pod.Observed) (whole uint64, each map[string]uint64, err error) {
	if whole, err = m.cgroups.PodMemory(p); err != nil {
		return 0, nil, err
	}
	sandbox := observed.Sandbox()
	if sandbox == nil {
		return whole, nil, nil
	}
	stats, err := m.cri.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: sandbox.ID})
	if err != nil {
		return 0, nil, err
	}
	each = map[string]uint64{}
	for _, s := range stats {
		if used := s.GetMemory().GetUsageBytes(); used != nil {
			each[s.GetAttributes().GetMetadata().GetName()] = used.Value
		}
	}
	return whole, each, nil
}

// resizing is how many pods do not have yet what they were given.
func (a *Agent) resizing() (n int) {
	for _, p := range a.pods.desired.List() {
		shown, _ := a.pods.status.Get(p.UID)
		if slices.ContainsFunc(shown.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress }) {
			n++
		}
	}
	return n
}
