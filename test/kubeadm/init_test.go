package kubeadm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ignored are the checks of kubeadm that a box cannot pass.
const ignored = "--ignore-preflight-errors=SystemVerification" // cgroup v1

// testInit runs kubeadm init and reads what it leaves for the kubelet and the administrator.
func (c *cluster) testInit(t *testing.T) {
	for _, m := range c.machines() {
		if state, err := m.Exec(t.Context(), "systemctl", "is-active", "kubelet"); err != nil || state != "active\n" {
			t.Errorf("before kubeadm, the kubelet's service of %s is %q, %v", m.Name(), state, err)
		}
	}
	const config = "/etc/kubernetes/init.yaml"
	text, err := os.ReadFile("testdata/init.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.control.Path(config), text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := c.control.kubeadm(t.Context(), "init", "--config", config, ignored)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Your Kubernetes control-plane has initialized successfully!") {
		t.Errorf("kubeadm init reports no success:\n%s", out)
	}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	// The certificate that kubeadm gave the kubelet is replaced by one that rotates.
	c.checkRotatable(t, c.control)
	eventually(t, timeout, func() string { return c.nodeReady(t, c.control.Name()) })
}

// checkRotatable checks that the kubelet's kubeconfig refers to the file that the kubelet rotates.
func (c *cluster) checkRotatable(t *testing.T, m *Machine) {
	t.Helper()
	text, err := os.ReadFile(m.Path("/etc/kubernetes/kubelet.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "client-certificate: " + clientPair; !strings.Contains(string(text), want) {
		t.Errorf("kubelet.conf of %s lacks %q", m.Name(), want)
	}
}

// testControlPlane checks the mirror pods of the static pods.
func (c *cluster) testControlPlane(t *testing.T) {
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		name := component + "-" + c.control.Name()
		eventually(t, timeout, func() string { return c.podReady(t, metav1.NamespaceSystem, name) })
		pod := c.pod(t, metav1.NamespaceSystem, name)
		if pod.Annotations["kubernetes.io/config.mirror"] == "" || pod.Annotations["kubernetes.io/config.source"] != "file" {
			t.Errorf("%s is no mirror pod of a file: %v", name, pod.Annotations)
		}
		if n := restarts(pod); n != 0 {
			t.Errorf("%s restarted %d times", name, n)
		}
	}
}

// nodeReady returns "" if the node is ready.
func (c *cluster) nodeReady(t *testing.T, name string) string {
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("node %s is not ready: %v", name, node.Status.Conditions)
}

// podReady returns "" if the pod runs and is ready.
func (c *cluster) podReady(t *testing.T, namespace, name string) string {
	pod, err := c.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return ready(pod)
}

func ready(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning {
			return ""
		}
	}
	return fmt.Sprintf("pod %s is not ready: %+v", pod.Name, pod.Status)
}

func (c *cluster) pod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		n += status.RestartCount
	}
	return n
}
