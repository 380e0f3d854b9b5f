package kubeadm

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// testUpgrade changes the configuration of the kubelets and of the scheduler, and upgrades every node
// as the documentation of kubeadm describes. Only the scheduler is replaced.
func (c *cluster) testUpgrade(t *testing.T) {
	c.edit(t, "kubelet-config", "kubelet", func(text string) string { return text + "maxPods: 99\n" })
	c.edit(t, "kubeadm-config", "ClusterConfiguration", func(text string) string {
		return strings.Replace(text, "scheduler: {}", "scheduler: {extraArgs: [{name: v, value: \"1\"}]}", 1)
	})
	scheduler := "kube-scheduler-" + c.control.Name()
	for _, m := range c.machines() {
		before := c.running(t, m.Name())
		old := before["kube-system/"+scheduler]
		delete(before, "kube-system/"+scheduler)
		out, err := m.kubeadm(t.Context(), "upgrade", "node", ignored)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, "The kubelet configuration for this node was successfully upgraded!") {
			t.Errorf("kubeadm upgrade node reports no success:\n%s", out)
		}
		config, err := os.ReadFile(m.Path("/var/lib/kubelet/config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(config), "maxPods: 99") {
			t.Errorf("configuration of %s after the upgrade:\n%s", m.Name(), config)
		}
		if _, err := m.Exec(t.Context(), "sh", "-c", "systemctl daemon-reload && systemctl restart kubelet"); err != nil {
			t.Fatal(err)
		}
		eventually(t, timeout, func() string { return c.podCapacity(t, m.Name(), "99") })
		c.checkUndisturbed(t, before, m != c.beside && kubelet == bed.Ours)
		if old == nil {
			continue
		}
		eventually(t, timeout, func() string { return c.podReady(t, "kube-system", scheduler) })
		if is := c.pod(t, "kube-system", scheduler); is.UID == old.UID || restarts(is) != 0 {
			t.Errorf("the scheduler's pod was %s and is %s, with %d restarts", old.UID, is.UID, restarts(is))
		}
	}
}

// edit changes a key of a ConfigMap of kubeadm.
func (c *cluster) edit(t *testing.T, name, key string, change func(string) string) {
	t.Helper()
	maps := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object, err := maps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := change(object.Data[key])
	if text == object.Data[key] {
		t.Fatalf("%s has unexpected content:\n%s", name, text)
	}
	object.Data[key] = text
	if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// podCapacity returns "" if the node reports that number of pods and is ready.
func (c *cluster) podCapacity(t *testing.T, name, want string) string {
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if got := node.Status.Capacity.Pods().String(); got != want {
		return "capacity of " + name + " is " + got + " pods"
	}
	return c.nodeReady(t, name)
}
