package agent

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/eviction"
	"swiftlet/internal/node"
	"swiftlet/internal/worker"
)

// makeEvictor makes what sheds pods before the node dies.
func (a *Agent) makeEvictor() error {
	kc := &a.cfg.Kubelet
	thresholds, err := eviction.Settings{
		Hard:            kc.EvictionHard,
		Soft:            kc.EvictionSoft,
		SoftGracePeriod: kc.EvictionSoftGracePeriod,
		MinimumReclaim:  kc.EvictionMinimumReclaim,
		Allocatable:     slices.Contains(kc.EnforceNodeAllocatable, "pods") && !a.cfg.Flags.AllocatableIgnoreEviction,
	}.Thresholds()
	if err != nil {
		return err
	}
	a.pods.evictor, err = eviction.New(eviction.Config{
		Thresholds: thresholds,
		Transition: kc.EvictionPressureTransitionPeriod.Duration,
		MaxGrace:   int64(kc.EvictionMaxPodGracePeriod),
		Limits:     *kc.LocalStorageCapacityIsolation,
	}, eviction.Deps{
		Stats:            a.pods.stats,
		Pods:             a.pods.workers,
		Events:           a.api.events,
		Node:             a.nodeRef(),
		Alarm:            a.machine.cgroups.NewAlarm(a.podsGroup()),
		RemoveContainers: a.removeDead,
		RemoveImages:     a.pods.collector.RemoveUnused,
		Changed:          a.machine.node.Poke,
		Meters:           a.metrics.Eviction(),
		Clock:            a.clock,
		Log:              a.log,
	})
	return err
}

// removeDead removes what is left of pods that have ended.
func (a *Agent) removeDead(ctx context.Context) error {
	return a.pods.steps.RemoveDead(ctx, a.ended)
}

// ended reports whether a pod has ended and is only remembered.
func (a *Agent) ended(uid types.UID) bool {
	stage, found := a.pods.workers.Stage(uid)
	return found && stage == worker.Ended
}

// pressure tells the node what it is short of.
func (a *Agent) pressure() node.Pressure {
	now := a.pods.evictor.Conditions()
	return node.Pressure{
		Memory: slices.Contains(now, v1.NodeMemoryPressure),
		Disk:   slices.Contains(now, v1.NodeDiskPressure),
		PID:    slices.Contains(now, v1.NodePIDPressure),
	}
}
