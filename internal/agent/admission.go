package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/admit"
	"swiftlet/internal/config"
	"swiftlet/internal/host"
	"swiftlet/internal/pod"
)

// newAdmission puts the checks in the reference kubelet's order, which decides the reason
// that a pod with two faults is rejected for. preempt, which may be nil, makes room for
// critical pods.
func (a *Agent) newAdmission(preempt admit.Preempt) (*admit.Admitter, error) {
	sysctls, err := admit.Sysctls(a.machine.facts.Kernel, a.cfg.Kubelet.AllowedUnsafeSysctls)
	if err != nil {
		return nil, err
	}
	node := func() (*v1.Node, error) { return a.machine.node.Object(), nil }
	declared, err := admit.DeclaredFeatures(config.KubernetesVersion, node)
	if err != nil {
		return nil, err
	}
	nodes := admit.NodeSource{Known: a.knownNode}
	if a.api.clients != nil {
		nodes.Fresh = a.freshNode
	}
	return admit.New(
		admit.Pressure(a.pods.evictor.Conditions),
		sysctls,
		a.allocate,
		admit.PodOS(),
		admit.SupplementalGroups(a.strictGroups),
		admit.Fit(nodes, preempt),
		admit.AppArmor(host.AppArmorEnabled()),
		admit.PodLevelResources(a.cfg.Features.PodLevelResources),
		declared,
		admit.Shutdown(a.machine.shutdown.Down),
	)
}

// rejecting words an admitter's objection as the end of the pod.
func (a *Agent) rejecting(admitter *admit.Admitter) func(*v1.Pod, []*v1.Pod) *pod.Failure {
	return func(p *v1.Pod, others []*v1.Pod) *pod.Failure {
		rejection := admitter.Admit(p, others)
		if rejection == nil {
			a.pods.judged(p, "")
			return nil
		}
		a.pods.judged(p, rejection.Reason)
		a.api.events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, rejection.Reason, "%s", rejection.Message)
		observed, _ := a.pods.observer.Get(p.UID) // it may run since an earlier agent admitted it
		return rejection.Failure(len(observed.Live()) == 0)
	}
}

// knownNode is the Node as last seen, with what this machine can give where the API server
// does not show that yet.
func (a *Agent) knownNode() (*v1.Node, error) {
	if a.api.clients == nil {
		return a.withoutDevices(a.machine.node.Object()), nil
	}
	n, err := a.watchedNode()
	if err != nil || len(n.Status.Allocatable) == 0 {
		n = a.machine.node.Object()
	}
	return a.withoutDevices(n), nil
}

// freshNode asks the API server, for labels that were just changed.
func (a *Agent) freshNode() (*v1.Node, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, err := a.api.clients.Kube.CoreV1().Nodes().Get(ctx, a.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return a.withoutDevices(n), nil
}

func (a *Agent) strictGroups() bool {
	f := a.machine.node.Object().Status.Features
	return f != nil && f.SupplementalGroupsPolicy != nil && *f.SupplementalGroupsPolicy
}
