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

// TestResourceClaim: claims that the scheduler allocates are prepared by a driver for as long
// as pods use them, whoever of agent and driver ends in between.
func TestResourceClaim(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "claims")
	driver := startClaimDriver(t, node, "claims.swiftlet.dev")
	driver.awaitOffer(true)
	t.Run("shared", func(t *testing.T) { testSharedClaim(t, driver) })
	t.Run("template", func(t *testing.T) { testTemplatedClaim(t, driver) })
	t.Run("deleted while it hangs", func(t *testing.T) { testHangingDriver(t, driver) })
	t.Run("agent killed while it hangs", func(t *testing.T) { testKilledInPreparation(t, driver) })
	t.Run("driver lost", func(t *testing.T) {
		began := time.Now()
		driver.stop() // its sockets are left behind
		driver.awaitOffer(false)
		if took := time.Since(began); took < 25*time.Second {
			t.Errorf("what the driver offers was withdrawn after %v; it could have come back", took)
		}
		driver.start()
		driver.awaitOffer(true)
	})
	t.Run("swap", func(t *testing.T) { testClaimSwap(t, driver) })
	if text, err := os.ReadFile(node.Path("/var/lib/kubelet/dra_manager_state")); err != nil || !strings.Contains(string(text), `\"ClaimInfoStateList\":[]`) {
		t.Errorf("the record of claims is %s, %v", text, err)
	}
}

// testSharedClaim: two pods share a claim. It is kept through a restart of the agent, and
// given up with the last pod.
func testSharedClaim(t *testing.T, driver *claimDriver) {
	node, space := driver.node, namespace(t)
	driver.claim(space, "shared")
	first := startPod(t, space, claimant("first", node.Name(), "shared"))
	startPod(t, space, claimant("second", node.Name(), "shared"))
	device := driver.device("shared")
	if device != "a" && device != "b" {
		t.Fatalf("the driver has prepared %q", device)
	}
	for _, name := range []string{"first", "second"} {
		inPod(t, node, space, name, fmt.Sprintf(`test "$SAMPLE_CLAIM_DEVICE" = %s`, device))
	}
	resources := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	shown, err := patiently(t, resources.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: "first"})
	want := fmt.Sprintf(`claim_name:"shared" claim_namespace:%q claim_resources:{cdi_devices:{name:"%s/device=%s"} driver_name:%q pool_name:%q device_name:%q}`,
		space, driver.name, device, driver.name, node.Name(), device)
	if err != nil || len(shown.PodResources.Containers[0].DynamicResources) != 1 || oneSpaced(shown.PodResources.Containers[0].DynamicResources[0]) != want {
		t.Errorf("shown as %v, %v, want %s", shown, err, want)
	}
	listed, err := patiently(t, resources.List, &resourcesv1.ListPodResourcesRequest{})
	if err != nil || strings.Count(oneSpaced(listed), want) != 2 {
		t.Errorf("listed are %v, %v, want twice %s", listed, err, want)
	}

	restartAgent(t, node)
	remove(t, space, "second")
	driver.awaitAsked("shared", "prepare")
	same(t, first, awaitPod(t, space, "first", usual, ready))
	remove(t, space, "first")
	driver.awaitAsked("shared", "prepare", "unprepare")
}

// testTemplatedClaim: a claim made for a pod alone.
func testTemplatedClaim(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: driver.wish()}}
	if _, err := client().ResourceV1().ResourceClaimTemplates(space).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := claimant("own", driver.node.Name(), "")
	p.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "device", ResourceClaimTemplateName: ptr.To("template")}
	p = startPod(t, space, p)
	claim := *p.Status.ResourceClaimStatuses[0].ResourceClaimName
	inPod(t, driver.node, space, "own", fmt.Sprintf(`test "$SAMPLE_CLAIM_DEVICE" = %s`, driver.device(claim)))
	remove(t, space, "own")
	driver.awaitAsked(claim, "prepare", "unprepare")
}

// testHangingDriver: a pod can go while a driver is at work for it, and others come up.
func testHangingDriver(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	driver.claim(space, "slow")
	driver.set("hang", "yes")
	create(t, space, claimant("stuck", driver.node.Name(), "slow"))
	driver.awaitAsked("slow", "prepare")
	startPod(t, space, sleeper("other", driver.node.Name()))
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The reference waits for the call, which may take 45 s.
	awaitPod(t, space, "stuck", within(usual, 3*usual), gone)
	driver.set("hang", "")
	driver.awaitAsked("slow", "prepare", "unprepare")
	remove(t, space, "other")
}

// testKilledInPreparation: the next agent goes on where a driver was asked and nobody heard
// the answer.
func testKilledInPreparation(t *testing.T, driver *claimDriver) {
	space := namespace(t)
	driver.claim(space, "interrupted")
	driver.set("hang", "yes")
	create(t, space, claimant("pod", driver.node.Name(), "interrupted"))
	driver.awaitAsked("interrupted", "prepare")
	if err := driver.node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	driver.set("hang", "")
	if err := driver.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "pod", 2*usual, ready)
	driver.awaitAsked("interrupted", "prepare", "prepare")
	remove(t, space, "pod")
	driver.awaitAsked("interrupted", "prepare", "prepare", "unprepare")
}

// testClaimSwap: our agent and the reference read each other's record of claims.
func testClaimSwap(t *testing.T, driver *claimDriver) {
	if kubelet != bed.Ours {
		t.Skip("both take part")
	}
	space := namespace(t)
	for _, name := range []string{"ours", "theirs"} {
		driver.claim(space, name)
	}
	ours := startPod(t, space, claimant("ours", driver.node.Name(), "ours"))
	swap(t, driver.node, bed.Reference)
	// The reference withdraws what the driver offers when it starts, and the driver offers it
	// anew; a pod that comes in between is tried again after a while.
	create(t, space, claimant("theirs", driver.node.Name(), "theirs"))
	theirs := awaitPod(t, space, "theirs", 4*usual, ready)
	same(t, ours, awaitPod(t, space, "ours", usual, ready))
	remove(t, space, "ours")
	driver.awaitAsked("ours", "prepare", "unprepare")
	swap(t, driver.node, bed.Ours)
	same(t, theirs, awaitPod(t, space, "theirs", usual, ready))
	remove(t, space, "theirs")
	driver.awaitAsked("theirs", "prepare", "unprepare")
}
