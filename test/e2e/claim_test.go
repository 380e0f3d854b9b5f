package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestResourceClaim checks that a driver prepares claims for as long as pods use them, also if agent
// or driver restart in between.
func TestResourceClaim(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "claims")
	driver := startClaimDriver(t, node, "claims.swiftlet.dev")
	driver.awaitSlices(true)
	t.Run("claim shared by two pods", func(t *testing.T) { testSharedClaim(t, driver) })
	t.Run("claim from template", func(t *testing.T) { testTemplatedClaim(t, driver) })
	t.Run("pod deleted while driver hangs", func(t *testing.T) { testHangingDriver(t, driver) })
	t.Run("agent killed while driver hangs", func(t *testing.T) { testKilledInPreparation(t, driver) })
	t.Run("slices deleted 30 s after driver stops", func(t *testing.T) {
		began := time.Now()
		driver.stop() // its sockets are not removed
		driver.awaitSlices(false)
		if took := time.Since(began); took < 25*time.Second {
			t.Errorf("ResourceSlices were deleted after %v, want about 30 s", took)
		}
		driver.start()
		driver.awaitSlices(true)
	})
	t.Run("kubelets swapped", func(t *testing.T) { testClaimKubeletSwap(t, driver) })
	if text, err := os.ReadFile(node.Path("/var/lib/kubelet/dra_manager_state")); err != nil || !strings.Contains(string(text), `\"ClaimInfoStateList\":[]`) {
		t.Errorf("dra_manager_state is %s, %v", text, err)
	}
}

// testSharedClaim: two pods share a claim. It stays prepared during a restart of the agent, and is
// unprepared with the last pod.
func testSharedClaim(t *testing.T, driver *claimDriver) {
	node, space := driver.node, namespace(t)
	driver.claim(space, "shared")
	first := startPod(t, space, podWithClaim("first", node.Name(), "shared"))
	startPod(t, space, podWithClaim("second", node.Name(), "shared"))
	device := driver.device("shared")
	if device != "a" && device != "b" {
		t.Fatalf("prepared device is %q", device)
	}
	for _, name := range []string{"first", "second"} {
		inPod(t, node, space, name, fmt.Sprintf(`test "$SAMPLE_CLAIM_DEVICE" = %s`, device))
	}
	resources := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	shown, err := retryRateLimited(t, resources.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: "first"})
	want := fmt.Sprintf(`claim_name:"shared" claim_namespace:%q claim_resources:{cdi_devices:{name:"%s/device=%s"} driver_name:%q pool_name:%q device_name:%q}`,
		space, driver.name, device, driver.name, node.Name(), device)
	if err != nil || len(shown.PodResources.Containers[0].DynamicResources) != 1 || normalizeSpaces(shown.PodResources.Containers[0].DynamicResources[0]) != want {
		t.Errorf("Get returned %v, %v, want %s", shown, err, want)
	}
	listed, err := retryRateLimited(t, resources.List, &resourcesv1.ListPodResourcesRequest{})
	if err != nil || strings.Count(normalizeSpaces(listed), want) != 2 {
		t.Errorf("List returned %v, %v, want twice %s", listed, err, want)
	}

	restartAgent(t, node)
	deletePod(t, space, "second")
	driver.awaitCalls("shared", "prepare")
	checkSameContainers(t, first, awaitPod(t, space, "first", timeout, ready))
	deletePod(t, space, "first")
	driver.awaitCalls("shared", "prepare", "unprepare")
}

// testTemplatedClaim: a claim that was created for one pod.
func testTemplatedClaim(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: driver.claimSpec()}}
	if _, err := client().ResourceV1().ResourceClaimTemplates(space).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := podWithClaim("own", driver.node.Name(), "")
	p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "device", ResourceClaimTemplateName: ptr.To("template")}
	p = startPod(t, space, p)
	claim := *p.Status.ResourceClaimStatuses[0].ResourceClaimName
	inPod(t, driver.node, space, "own", fmt.Sprintf(`test "$SAMPLE_CLAIM_DEVICE" = %s`, driver.device(claim)))
	deletePod(t, space, "own")
	driver.awaitCalls(claim, "prepare", "unprepare")
}

// testHangingDriver: while a driver hangs for a pod, the pod can be deleted and others start.
func testHangingDriver(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	driver.claim(space, "slow")
	driver.set("hang", "yes")
	create(t, space, podWithClaim("stuck", driver.node.Name(), "slow"))
	driver.awaitCalls("slow", "prepare")
	startPod(t, space, sleeper("other", driver.node.Name()))
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The reference waits for the call, which may take 45 s.
	awaitPod(t, space, "stuck", timeoutFor(timeout, 3*timeout), gone)
	driver.set("hang", "")
	driver.awaitCalls("slow", "prepare", "unprepare")
	deletePod(t, space, "other")
}

// testKilledInPreparation: the agent is killed during a Prepare call, and the next one calls again.
func testKilledInPreparation(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	driver.claim(space, "interrupted")
	driver.set("hang", "yes")
	create(t, space, podWithClaim("pod", driver.node.Name(), "interrupted"))
	driver.awaitCalls("interrupted", "prepare")
	if err := driver.node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	driver.set("hang", "")
	if err := driver.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "pod", 2*timeout, ready)
	driver.awaitCalls("interrupted", "prepare", "prepare")
	deletePod(t, space, "pod")
	driver.awaitCalls("interrupted", "prepare", "prepare", "unprepare")
}

// testClaimKubeletSwap: our kubelet and the reference read each other's state of claims.
func testClaimKubeletSwap(t *testing.T, driver *claimDriver) {
	if kubelet != bed.Ours {
		t.Skip("both take part")
	}
	space := namespace(t)
	for _, name := range []string{"ours", "theirs"} {
		driver.claim(space, name)
	}
	ours := startPod(t, space, podWithClaim("ours", driver.node.Name(), "ours"))
	swapKubelet(t, driver.node, bed.Reference)
	// The reference deletes the driver's ResourceSlices when it starts, and the driver publishes
	// them again. A pod that is created in between is retried later.
	create(t, space, podWithClaim("theirs", driver.node.Name(), "theirs"))
	theirs := awaitPod(t, space, "theirs", 4*timeout, ready)
	checkSameContainers(t, ours, awaitPod(t, space, "ours", timeout, ready))
	deletePod(t, space, "ours")
	driver.awaitCalls("ours", "prepare", "unprepare")
	swapKubelet(t, driver.node, bed.Ours)
	checkSameContainers(t, theirs, awaitPod(t, space, "theirs", timeout, ready))
	deletePod(t, space, "theirs")
	driver.awaitCalls("theirs", "prepare", "unprepare")
}
