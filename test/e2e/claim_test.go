package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

const (
	claimDriver      = "claims.swiftlet.dev"
	claimDriverState = "/var/lib/kubelet/plugins/" + claimDriver
)

// startClaimDriver runs test/dradriver on the node; the function it returns ends it.
func startClaimDriver(t *testing.T, node *bed.Box) (stop func()) {
	t.Helper()
	program := filepath.Join(filepath.Dir(cluster.Logs()), "dradriver") // goes with the bed
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../dradriver"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal("build the driver:", errors.New(string(out)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := node.Command(ctx, program, "-name", claimDriver, "-node", node.Name(), "-state", claimDriverState)
	log, err := os.OpenFile(node.Log("dradriver"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// prepared is what the driver says that it has prepared.
func prepared(node *bed.Box) string {
	text, _ := os.ReadFile(node.Path(filepath.Join(claimDriverState, "prepared")))
	return strings.TrimSpace(string(text))
}

// claimant is a pod that uses a claim.
func claimant(name, node, claim string) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To(claim)}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	return pod
}

// TestResourceClaim: two pods share a claim that the scheduler allocates and a driver
// prepares; it is kept through a restart of the agent, and given up with the last pod.
func TestResourceClaim(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "claims")
	startClaimDriver(t, node)
	space := namespace(t)
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "sample"}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + claimDriver + `"`}}}
	if _, err := client().ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "sample"}}}
	if _, err := client().ResourceV1().ResourceClaims(space).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, space, claimant("first", node.Name(), "shared"))
	first := awaitPod(t, space, "first", 2*usual, ready)
	startPod(t, space, claimant("second", node.Name(), "shared"))
	_, device, _ := strings.Cut(prepared(node), " ")
	if device != "a" && device != "b" {
		t.Fatalf("the driver has prepared %q", prepared(node))
	}
	for _, name := range []string{"first", "second"} {
		inPod(t, node, space, name, fmt.Sprintf(`test "$SAMPLE_CLAIM_DEVICE" = %s`, device))
	}
	resources := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	shown, err := patiently(t, resources.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: "first"})
	want := fmt.Sprintf(`claim_name:"shared" claim_namespace:%q claim_resources:{cdi_devices:{name:"claims.swiftlet.dev/device=%s"} driver_name:%q pool_name:%q device_name:%q}`,
		space, device, claimDriver, node.Name(), device)
	if err != nil || len(shown.PodResources.Containers[0].DynamicResources) != 1 || oneSpaced(shown.PodResources.Containers[0].DynamicResources[0]) != want {
		t.Errorf("shown as %v, %v, want %s", shown, err, want)
	}

	restartAgent(t, node)
	remove(t, space, "second")
	if prepared(node) == "" {
		t.Error("given up while a pod uses it")
	}
	same(t, first, awaitPod(t, space, "first", usual, ready))
	remove(t, space, "first")
	if left := prepared(node); left != "" {
		t.Errorf("still prepared: %s", left)
	}
}
