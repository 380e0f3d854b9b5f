package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubelet "k8s.io/kubelet/config/v1beta1"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/pod"
	"swiftlet/internal/podsync"
	"swiftlet/internal/runtime"
)

// podCgroups are the groups that pods have of their own.
type podCgroups interface {
	podsync.Cgroups
	Pods() ([]types.UID, error)
	PodMemory(p *v1.Pod) (uint64, error)
}

func (a *Agent) podCgroups() podCgroups {
	if !*a.cfg.Kubelet.CgroupsPerQOS {
		return cgroup.None{}
	}
	return qosCgroups{Tree: a.machine.cgroups, active: func() []*v1.Pod { return a.pods.workers.Active() }}
}

// podsGroup is the group of all pods, "" where they have none.
func (a *Agent) podsGroup() string {
	if !*a.cfg.Kubelet.CgroupsPerQOS {
		return ""
	}
	return a.machine.cgroups.Top()
}

// qosCgroups keeps the classes' shares in step with the pods in them.
type qosCgroups struct {
	*cgroup.Tree
	active func() []*v1.Pod
}

func (c qosCgroups) EnsurePod(p *v1.Pod) error {
	return errors.Join(c.UpdateQOS(c.active()), c.Tree.EnsurePod(p))
}

func (c qosCgroups) RemovePod(ctx context.Context, uid types.UID) error {
	if err := c.Tree.RemovePod(ctx, uid); err != nil {
		return err
	}
	return c.UpdateQOS(c.active())
}

// handler finds the runtime that a pod's class names, and what it can do.
func (a *Agent) handler(p *v1.Pod) (runtime.Handler, error) {
	var h runtime.Handler
	if name := p.Spec.RuntimeClassName; name != nil && *name != "" {
		if a.api.classes == nil {
			return h, fmt.Errorf("runtime class %q: there is no API server to know it", *name)
		}
		class, err := a.api.classes.Get(*name)
		if err != nil {
			return h, err
		}
		h.Name = class.Handler
	}
	for _, known := range a.machine.node.Object().Status.RuntimeHandlers {
		if known.Name == h.Name && known.Features != nil && known.Features.RecursiveReadOnlyMounts != nil {
			h.RecursiveReadOnly = *known.Features.RecursiveReadOnlyMounts
		}
	}
	return h, nil
}

// objectChanged has the pods that use a ConfigMap or Secret try their containers again that
// wait for it. Volumes look after themselves.
func (a *Agent) objectChanged(kind, namespace, name string) {
	changed := kubeapi.Ref{Kind: kind, Namespace: namespace, Name: name}
	for _, p := range a.pods.desired.List() {
		if p.Namespace != namespace {
			continue
		}
		if _, uses := kubeapi.References(p)[changed]; uses {
			a.pods.workers.ObjectChanged(p.UID)
		}
	}
}

// orphanMirrors are the images of static pods of which nothing is left. While one is still
// being stopped, its mirror is how others see that.
func (a *Agent) orphanMirrors() []*v1.Pod {
	return slices.DeleteFunc(a.pods.desired.OrphanMirrors(), func(m *v1.Pod) bool {
		return a.pods.workers.KnownByName(pod.FullName(m))
	})
}

// network says why pods cannot be given addresses yet.
func (a *Agent) network() error { return a.machine.node.NetworkReady() }

// containerLogsDir holds the links to container logs: beside the pods' logs.
func containerLogsDir(podLogs string) string {
	return filepath.Join(filepath.Dir(filepath.Clean(podLogs)), "containers")
}

// swap and v2 tell the runtime what the kernel can bound.
func (a *Agent) swap() runtime.Swap {
	return runtime.Swap{
		Controller: a.machine.cgroups.BoundsSwap(),
		Limited:    a.cfg.Kubelet.MemorySwap.SwapBehavior == "LimitedSwap",
		Capacity:   a.machine.facts.SwapBytes,
	}
}

func (a *Agent) v2() (*runtime.V2, error) {
	if a.machine.cgroups.Version() != 2 {
		return nil, nil
	}
	memory, err := a.podMemory()
	if err != nil {
		return nil, err
	}
	kc := &a.cfg.Kubelet
	v2 := &runtime.V2{SingleProcessOOMKill: kc.SingleProcessOOMKill != nil && *kc.SingleProcessOOMKill}
	if a.cfg.Features.MemoryQoS {
		v2.MemoryQOS = &runtime.MemoryQOS{
			Reserve:          kc.MemoryReservationPolicy == kubelet.TieredReservationMemoryReservationPolicy,
			ThrottlingFactor: kc.MemoryThrottlingFactor,
			Allocatable:      memory,
		}
	}
	return v2, nil
}
