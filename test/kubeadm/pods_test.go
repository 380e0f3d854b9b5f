package kubeadm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testAddons waits for the pods of kube-proxy, on every node, and of CoreDNS.
func (c *cluster) testAddons(t *testing.T) {
	for _, addon := range []string{"daemonset/kube-proxy", "deployment/coredns"} {
		if _, err := c.kubectl(t.Context(), "-n", "kube-system", "rollout", "status", addon, "--timeout=2m"); err != nil {
			t.Error(err)
		}
	}
	table, err := c.kubectl(t.Context(), "get", "pods", "-A", "-o", "wide")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pods:\n%s", table)
}

// testPods runs the same pods on both workers and compares what the kubelets report.
func (c *cluster) testPods(t *testing.T) {
	c.apply(t, "testdata/pods.yaml")
	for _, name := range []string{"web", "completes", "fails"} {
		for _, m := range c.workers() {
			eventually(t, timeout, func() string { return settled(c.pod(t, "default", name+"-"+m.Name())) })
		}
		// After its end, a pod's sandbox is stopped, which changes the status once more.
		eventually(t, timeout, func() string {
			reference := statusText(t, c.pod(t, "default", name+"-"+c.beside.Name()))
			own := statusText(t, c.pod(t, "default", name+"-"+c.own.Name()))
			if diff := cmp.Diff(reference, own); diff != "" {
				return fmt.Sprintf("status of pod %s differs (-%s +%s):\n%s", name, c.beside.Name(), c.own.Name(), diff)
			}
			return ""
		})
	}
}

// apply applies a file once for each worker.
func (c *cluster) apply(t *testing.T, path string) {
	t.Helper()
	eventually(t, timeout, func() string { // pods cannot be created before it
		if _, err := c.client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.workers() {
		file := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "@node", m.Name())), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.kubectl(t.Context(), "apply", "-f", file); err != nil {
			t.Fatal(err)
		}
	}
}

// settled returns "" if the pod has ended or is ready.
func settled(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return ""
	}
	return ready(pod)
}

// varying are the fields of a status that differ between two runs of a pod.
var varying = []string{"podIP", "podIPs", "hostIP", "hostIPs", "containerID",
	"startTime", "startedAt", "finishedAt", "lastTransitionTime"}

// statusText returns the pod's status as text, without the varying fields.
func statusText(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	text, err := json.Marshal(pod.Status)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	without(fields, varying)
	// On cgroup v1 the reference kubelet may report the kernel's largest number as the pod's limit.
	delete(fields, "resources")
	text, err = json.MarshalIndent(fields, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return tokenVolume.ReplaceAllString(strings.ReplaceAll(string(text), pod.Spec.NodeName, "@node"), "kube-api-access")
}

// tokenVolume is the name of the volume that the API server adds to a pod.
var tokenVolume = regexp.MustCompile(`kube-api-access-\w+`)

// without removes fields by name, at all depths.
func without(value any, names []string) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(name string, _ any) bool { return slices.Contains(names, name) })
		for _, inner := range value {
			without(inner, names)
		}
	case []any:
		for _, inner := range value {
			without(inner, names)
		}
	}
}

// testAccess reaches pods through CoreDNS, kube-proxy, and the kubelets' servers.
func (c *cluster) testAccess(t *testing.T) {
	service, err := c.client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range c.workers() {
		other := c.workers()[1-i]
		c.awaitInPod(t, m, service.Spec.ClusterIP, "nslookup", "web.default.svc.cluster.local")
		for _, address := range []string{service.Spec.ClusterIP + ":80", c.pod(t, "default", "web-"+other.Name()).Status.PodIP + ":8080"} {
			c.awaitInPod(t, m, "hello", "timeout", "5", "wget", "-qO-", "http://"+address)
		}
		if out, err := c.kubectl(t.Context(), "logs", "completes-"+m.Name()); err != nil || out != "default" {
			t.Errorf("log of a pod of %s: %q, %v", m.Name(), out, err)
		}
	}
}

// awaitInPod runs a command in the web pod of the machine until its output contains want.
func (c *cluster) awaitInPod(t *testing.T, m *Machine, want string, command ...string) {
	t.Helper()
	eventually(t, timeout, func() string {
		out, err := c.kubectl(t.Context(), append([]string{"exec", "web-" + m.Name(), "-c", "web", "--"}, command...)...)
		if err != nil || !strings.Contains(out, want) {
			return fmt.Sprintf("%v on %s: %q, %v", command, m.Name(), out, err)
		}
		return ""
	})
}
