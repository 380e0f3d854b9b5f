package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// openConfigz lets the node's own user read /configz.
const openConfigz = `authorization: {mode: AlwaysAllow}`

// TestLiveCheck: on a node that runs the reference kubelet, `swiftlet check --live` finds that a swap would
// restart no pod, and lists what a swap would change. It changes nothing itself.
func TestLiveCheck(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("runs both kubelets")
	}
	t.Parallel()
	node := bareNode(t, "live")
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: bed.Reference, Config: openConfigz}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	space := namespace(t)
	write(t, node.Path("/etc/kubernetes/manifests/swapped.yaml"), fmt.Appendf(nil, staticSleeper, images.Busybox))
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Data: map[string]string{"key": "value"}}
	if _, err := client().CoreV1().ConfigMaps(space).Create(t.Context(), data, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range livePods(node.Name()) {
		create(t, space, pod)
	}
	for _, pod := range livePods(node.Name()) {
		awaitPod(t, space, pod.Name, timeout, ready)
	}
	awaitPod(t, staticNamespace, "swapped-"+node.Name(), timeout, ready)

	clean := liveCheck(t, node, true)
	expectLines(t, clean, "settings: no change\n", "state files: all ", fmt.Sprintf("pods: %d run, none would be restarted\n", len(livePods(""))+1))

	// A suspended kubelet answers no requests and applies no change.
	resume, err := node.PauseKubelet()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := resume(); err != nil {
			t.Error(err)
		}
	}()
	config := node.Path("/etc/kubernetes/kubelet.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, append(text, "hairpinMode: none\n"...))
	write(t, node.Path("/var/lib/kubelet/dra_manager_state"), []byte("{damaged"))
	patch := []byte(`{"spec":{"containers":[{"name":"c","image":"example.invalid/other:1"}]}}`)
	if _, err := client().CoreV1().Pods(space).Patch(t.Context(), "plain", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(node.Path("/etc/kubernetes/manifests/swapped.yaml")); err != nil {
		t.Fatal(err)
	}
	expectLines(t, liveCheck(t, node, false),
		"the running kubelet does not show its configuration",
		"kubelet.yaml: changed after the running kubelet has read it",
		"hairpinMode has no effect",
		"dra_manager_state: ", "checkpoint is corrupt",
		space+"/plain: container c would be restarted: the hash of its name and image differs",
		"kube-system/swapped-"+node.Name()+": would be stopped: neither the API server nor a manifest has it",
		"a swap would disturb this node")
}

// liveCheck returns the output of the check, and verifies that it changes no container and no file.
func liveCheck(t *testing.T, node *bed.Box, passes bool) string {
	t.Helper()
	state := func() string {
		// The running kubelet writes its own files.
		out, err := node.Exec(t.Context(), "sh", "-c", `find /var/lib/kubelet /etc/kubernetes -not -path '*/pods/*' | sort; `+
			`ls /run/containerd/io.containerd.runtime.v2.task/k8s.io`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := state()
	out, errOut, err := node.Swiftlet(t.Context(), "check", "--live")
	if (err == nil) != passes {
		t.Errorf("swiftlet check --live: %v:\n%s%s", err, out, errOut)
	}
	if after := state(); after != before {
		t.Errorf("the check has changed the node from\n%s\nto\n%s", before, after)
	}
	t.Logf("swiftlet check --live:\n%s%s", out, errOut)
	return out + errOut
}

func expectLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in:\n%s", line, text)
		}
	}
}
