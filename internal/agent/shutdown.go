package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/shutdown"
	"swiftlet/internal/worker"
)

// shutdownLook is how often it is looked whether a pod has ended, while the machine waits.
const shutdownLook = 50 * time.Millisecond

// makeShutdown makes what ends pods before the machine goes down.
func (a *Agent) makeShutdown() (err error) {
	deps := shutdown.Deps{
		Pods:    func() []*v1.Pod { return a.pods.workers.Active() },
		End:     a.endForShutdown,
		Changed: func() { a.machine.node.Poke() },
		Events:  a.api.events,
		Node:    a.nodeRef(),
		Clock:   a.clock,
		Log:     a.log,
	}
	if a.cfg.Features.GracefulNodeShutdownBasedOnPodPriority {
		deps.Measured = a.metrics.Shutdown()
	}
	a.machine.shutdown, err = shutdown.New(shutdown.Config{
		Groups: a.shutdownGroups(), RootDir: a.cfg.Flags.RootDir, LogindDir: "/etc/systemd/logind.conf.d",
	}, deps)
	if err == nil {
		a.machine.parts = append(a.machine.parts, part{"shutdown", a.machine.shutdown.Run})
	}
	return err
}

// shutdownGroups reads who is given how long; none where nobody is to wait.
func (a *Agent) shutdownGroups() []shutdown.Group {
	kc, f := &a.cfg.Kubelet, a.cfg.Features
	switch {
	case !f.GracefulNodeShutdown:
		return nil
	case !f.GracefulNodeShutdownBasedOnPodPriority || len(kc.ShutdownGracePeriodByPodPriority) == 0:
		return shutdown.TwoGroups(kc.ShutdownGracePeriod.Duration, kc.ShutdownGracePeriodCriticalPods.Duration)
	}
	var groups []shutdown.Group
	for _, g := range kc.ShutdownGracePeriodByPodPriority {
		groups = append(groups, shutdown.Group{Priority: g.Priority, Grace: time.Duration(g.ShutdownGracePeriodSeconds) * time.Second})
	}
	return groups
}

// endForShutdown ends a pod and returns when nothing of it is left, and the API server, where
// there is one, knows.
func (a *Agent) endForShutdown(ctx context.Context, p *v1.Pod, grace int64) {
	const message = "Pod was terminated in response to imminent node shutdown."
	a.log.Info("ending a pod before the machine goes down", "pod", pod.RefOf(p).String(), "grace", grace)
	a.pods.workers.Evict(p.UID, pod.Failure{Reason: "Terminated", Message: message, Condition: &v1.PodCondition{
		Type:    v1.DisruptionTarget,
		Status:  v1.ConditionTrue,
		Reason:  v1.PodReasonTerminationByKubelet,
		Message: message,
	}}, &grace)
	for !a.endedAndTold(p) {
		select {
		case <-ctx.Done():
			return
		case <-a.clock.After(shutdownLook):
		}
	}
}

func (a *Agent) endedAndTold(p *v1.Pod) bool {
	if stage, known := a.pods.workers.Stage(p.UID); known && stage < worker.Ended {
		return false
	}
	shown, known := a.pods.desired.Get(p.UID)
	if known && pod.IsStatic(p) {
		shown = a.pods.desired.MirrorOf(p)
		known = shown != nil
	}
	if a.api.clients == nil || !known {
		return true
	}
	return pod.IsTerminal(shown.Status.Phase)
}
