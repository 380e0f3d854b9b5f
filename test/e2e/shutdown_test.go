package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/logind"
)

// TestGracefulShutdown: on a node shutdown, regular pods terminate before critical ones, their last status is
// written before the inhibitor lock is released, and new pods are rejected.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	node, login := shutdownNode(t)
	in := namespace(t)
	now := finalStateView(t, node, in)
	usualPod, critical := sleeper("usual", node.Name()), sleeper("critical", node.Name())
	for _, p := range []*corev1.Pod{usualPod, critical} {
		p.Spec.Containers[0].Command = []string{"sh", "-c", failOnTerm}
	}
	critical.Spec.PriorityClassName = "system-node-critical"
	create(t, in, usualPod)
	create(t, in, critical)
	awaitPod(t, in, "usual", timeout, ready)
	awaitPod(t, in, "critical", timeout, ready)
	eventually(t, timeout, func() string {
		if login.Held() == 0 {
			return "there is no inhibitor lock"
		}
		return ""
	})

	if err := login.Announce(true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-login.Released():
	case <-time.After(timeout):
		t.Fatal("the inhibitor lock is not released")
	}
	var ended []time.Time
	for _, name := range []string{"usual", "critical"} {
		p, err := client().CoreV1().Pods(in).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const message = "Pod was terminated in response to imminent node shutdown."
		if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "Terminated" || p.Status.Message != message {
			t.Fatalf("%s: %s, %s: %s", name, p.Status.Phase, p.Status.Reason, p.Status.Message)
		}
		if c := conditionOf(p, corev1.DisruptionTarget); c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonTerminationByKubelet {
			t.Errorf("%s: %+v", name, c)
		}
		if state := p.Status.ContainerStatuses[0].State.Terminated; state == nil {
			t.Errorf("%s: %+v", name, p.Status.ContainerStatuses[0].State)
		} else {
			ended = append(ended, state.FinishedAt.Time)
		}
	}
	if len(ended) == 2 && ended[1].Before(ended[0]) {
		t.Errorf("the critical pod terminated at %v, before the regular one at %v", ended[1], ended[0])
	}
	awaitReadyIs(t, node.Name(), corev1.ConditionFalse, "node is shutting down")
	late := sleeper("late", node.Name())
	late.Spec.NodeName = node.Name() // bypasses the scheduler
	create(t, in, late)
	compareFinalState(t, now, in, "late", "shutdown")
	if err := login.Announce(false); err != nil {
		t.Fatal(err)
	}
	awaitReadyIs(t, node.Name(), corev1.ConditionTrue, "")
}

// shutdownNode adds a node with a D-Bus daemon and a fake logind.
func shutdownNode(t *testing.T) (*bed.Box, *logind.Logind) {
	t.Helper()
	node := bareNode(t, "shutdown")
	login := startLogind(t, node)
	startKubelet(t, node, "shutdownGracePeriod: 25s\nshutdownGracePeriodCriticalPods: 12s\n")
	return node, login
}

// startLogind starts a D-Bus daemon and a fake logind on the node.
func startLogind(t *testing.T, node *bed.Box) *logind.Logind {
	t.Helper()
	const socket, config = "/run/dbus/system_bus_socket", "/etc/kubernetes/bus.conf"
	if err := os.WriteFile(node.Path(config), []byte(logind.BusConfig(socket)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkdir", "-p", "/run/dbus"}, {"dbus-daemon", "--fork", "--config-file=" + config}} {
		if _, err := node.Exec(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	login, err := logind.Start("unix:path="+node.Inside(socket), 30e6, 30e6)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = login.Close() })
	return login
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// awaitReadyIs waits until the node's condition Ready has this status and message.
func awaitReadyIs(t *testing.T, name string, status corev1.ConditionStatus, why string) {
	t.Helper()
	eventually(t, timeout, func() string {
		node, err := client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == status && strings.Contains(c.Message, why) {
				return ""
			}
		}
		return fmt.Sprintf("conditions: %+v", node.Status.Conditions)
	})
}
