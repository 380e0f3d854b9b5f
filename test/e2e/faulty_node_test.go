package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

const faultyReady = "/etc/kubernetes/flags/ready"

// faultyNode is a node whose connections to others are disturbed. It has a pod that nothing should restart,
// and one whose readiness changes.
type faultyNode struct {
	node    *bed.Box
	space   string
	counted *tally.Tally

	agentStart float64
	steady     string // container of the pod that nothing should restart
	isReady    bool   // what the probed pod should be
	injected   int
}

// newFaultyNode adds a node without a running kubelet, for faults of a class.
func newFaultyNode(t *testing.T, name, class string) *faultyNode {
	t.Helper()
	f := &faultyNode{node: bareNode(t, name), space: clearedNamespace(t), counted: tally.New(t, class)}
	if err := os.MkdirAll(f.node.Path("/etc/kubernetes/flags"), 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

// start starts the kubelet and the pods.
func (f *faultyNode) start(t *testing.T, config string) {
	t.Helper()
	f.setReady(t, true)
	startKubelet(t, f.node, config)
	f.agentStart = valueOf(scrape(t, f.node), "process_start_time_seconds{}")
	steady := startPod(t, f.space, sleeper("steady", f.node.Name()))
	f.steady = steady.Status.ContainerStatuses[0].ContainerID
	probed := sleeper("probed", f.node.Name())
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/flags/ready"}}}}
	probed.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "flags", MountPath: "/flags"}}
	probed.Spec.Volumes = []corev1.Volume{{Name: "flags", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/kubernetes/flags"}}}}
	startPod(t, f.space, probed)
}

func (f *faultyNode) setReady(t *testing.T, ready bool) {
	t.Helper()
	if f.isReady = ready; ready {
		write(t, f.node.Path(faultyReady), nil)
	} else if err := os.Remove(f.node.Path(faultyReady)); err != nil {
		t.Fatal(err)
	}
}

// disturb changes the readiness of the probed pod and creates another pod, whose name it returns.
func (f *faultyNode) disturb(t *testing.T) (late string) {
	t.Helper()
	f.setReady(t, !f.isReady)
	f.injected++
	late = fmt.Sprintf("late-%d", f.injected)
	create(t, f.space, sleeper(late, f.node.Name()))
	return late
}

// missing lists what is not as it should be.
func (f *faultyNode) missing(t *testing.T, late string) string {
	t.Helper()
	var lines []string
	add := func(text string) {
		if text != "" {
			lines = append(lines, text)
		}
	}
	pod := func(name string) *corev1.Pod {
		p, err := client().CoreV1().Pods(f.space).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			add(err.Error())
			return nil
		}
		return p
	}
	if steady := pod("steady"); steady != nil {
		add(ready(steady))
		if got := steady.Status.ContainerStatuses[0]; got.ContainerID != f.steady || got.RestartCount != 0 {
			add(fmt.Sprintf("steady: container %s after %d restarts, want %s", got.ContainerID, got.RestartCount, f.steady))
		}
	}
	if probed := pod("probed"); probed != nil && (ready(probed) == "") != f.isReady {
		add(fmt.Sprintf("probed: ready is not %t", f.isReady))
	}
	if p := pod(late); p != nil && ready(p) != "" {
		add(late + ": " + ready(p))
	}
	node, err := client().CoreV1().Nodes().Get(t.Context(), f.node.Name(), metav1.GetOptions{})
	if err != nil {
		add(err.Error())
	} else {
		add(nodeReady(corev1.ConditionTrue)(node))
		add(f.address(node))
	}
	return strings.Join(lines, "\n")
}

// address checks that the Node has the address of the node.
func (f *faultyNode) address(node *corev1.Node) string {
	if !slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == f.node.Address() }) {
		return fmt.Sprintf("the node's addresses are %v", node.Status.Addresses)
	}
	return ""
}

// countLost checks that the agent is the one of the start, and counts pods that are lost or restarted.
func (f *faultyNode) countLost(t *testing.T) {
	t.Helper()
	if now := valueOf(scrape(t, f.node), "process_start_time_seconds{}"); now != f.agentStart {
		t.Error("the agent was restarted")
	}
	list, err := client().CoreV1().Pods(f.space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.Status.Phase != corev1.PodRunning {
			f.counted.PodsLost(1)
			t.Errorf("pod %s is %s", p.Name, p.Status.Phase)
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				f.counted.Restarts(int(c.RestartCount))
				t.Errorf("pod %s was restarted %d times", p.Name, c.RestartCount)
			}
		}
	}
}
