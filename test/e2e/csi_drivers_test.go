package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestCSIDrivers tests optional features of drivers.
func TestCSIDrivers(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "csi-drivers")
	for name, test := range map[string]func(*testing.T, *bed.Box){
		"fsgroup-policy":     testGroups,
		"driver-replaced":    testReplaced,
		"ephemeral-claim":    testEphemeralClaim,
		"readwriteoncepod":   testOnePod,
		"requires-republish": testRepublish,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, node)
		})
	}
}

// testGroups: the pod's fsGroup is applied by the kubelet, if the driver's fsGroupPolicy says so, or
// by the driver.
func testGroups(t *testing.T, node *bed.Box) {
	space := namespace(t)
	for _, c := range []struct {
		name          string
		policy        storagev1.FSGroupPolicy
		fsType        string
		args          []string
		group         string // expected group of /data
		expectedGroup string // expected VolumeMountGroup of the request
	}{
		{name: "none", policy: storagev1.NoneFSGroupPolicy, fsType: "ext4", group: "0"},
		{name: "file", policy: storagev1.FileFSGroupPolicy, group: "4321"},
		{name: "typed", policy: storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, fsType: "ext4", group: "4321"},
		{name: "untyped", policy: storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, group: "0"},
		{name: "itself", policy: storagev1.NoneFSGroupPolicy, args: []string{"-mount-group"}, group: "4321", expectedGroup: "4321"},
	} {
		d := startDriver(t, node, c.name+".group.csi.test", c.args...)
		createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), FSGroupPolicy: &c.policy})
		awaitDriver(t, d)
		claim(t, space, c.name, corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume(c.name, 16<<20), FSType: c.fsType}, corev1.PersistentVolumeFilesystem)
		pod := podWithVolume(c.name, node.Name(), fromClaim(c.name))
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](4321)}
		create(t, space, pod)
		awaitPod(t, space, c.name, 2*timeout, ready)
		inPod(t, node, space, c.name, fmt.Sprintf(`g=$(stat -c %%g /data); test "$g" = %s || { echo "the group is $g"; false; }`, c.group))
		if calls := d.calls("NodePublishVolume"); len(calls) == 0 || calls[0].VolumeCapability.Mount.VolumeMountGroup != c.expectedGroup {
			t.Errorf("%s: published with %+v", c.name, calls)
		}
		deletePod(t, space, c.name)
		eventually(t, 2*timeout, d.stagedOrPublished)
	}
}

// testReplaced replaces a driver whose volume is in use by a newer one.
func testReplaced(t *testing.T, node *bed.Box) {
	if kubelet != bed.Ours {
		t.Skip("the reference unregisters the newer driver when the older one's socket is removed")
	}
	space := namespace(t)
	old := startDriver(t, node, "replaced.csi.test", "-max-volumes", "5")
	createCSIDriver(t, old.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, old)
	claim(t, space, "disk", corev1.CSIPersistentVolumeSource{Driver: old.name, VolumeHandle: old.makeVolume("disk", 16<<20)}, corev1.PersistentVolumeFilesystem)
	create(t, space, podWithVolume("one", node.Name(), fromClaim("disk")))
	awaitPod(t, space, "one", 2*timeout, ready)

	const registry = "/var/lib/kubelet/plugins_registry/"
	newer := startDriver(t, node, old.name, "-max-volumes", "9", "-versions", "1.0.0,1.1.0",
		"-endpoint", "/var/lib/kubelet/plugins/"+old.name+"/newer.sock", "-register", registry+"newer-reg.sock")
	eventually(t, timeout, func() string {
		if got := awaitDriver(t, newer); got.Allocatable == nil || *got.Allocatable.Count != 9 {
			return fmt.Sprintf("the CSINode has %+v, want the newer driver", got)
		}
		return ""
	})
	old.kill()
	<-old.done
	if err := os.Remove(node.Path(registry + old.name + "-reg.sock")); err != nil {
		t.Fatal(err)
	}
	create(t, space, podWithVolume("two", node.Name(), fromClaim("disk")))
	awaitPod(t, space, "two", timeoutFor(2*timeout, 5*timeout), ready)
	deletePod(t, space, "one")
	deletePod(t, space, "two")
	eventually(t, 2*timeout, newer.stagedOrPublished)
	awaitDriver(t, newer)
}

// testEphemeralClaim uses a generic ephemeral volume.
func testEphemeralClaim(t *testing.T, node *bed.Box) {
	space := namespace(t)
	d := startDriver(t, node, "ephemeral.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: space}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: space, Name: "pod-v"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("v", 16<<20)}},
	}}
	if _, err := client().CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	create(t, space, podWithVolume("pod", node.Name(), corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: ptr.To(""), VolumeName: space, Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
	}}))
	awaitPod(t, space, "pod", timeoutFor(2*timeout, 5*timeout), ready)
	inPod(t, node, space, "pod", "echo hello > /data/file")
	deletePod(t, space, "pod")
	eventually(t, 2*timeout, d.stagedOrPublished)
	eventually(t, 2*timeout, func() string {
		claims, err := client().CoreV1().PersistentVolumeClaims(space).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(claims.Items) > 0 {
			return fmt.Sprintf("the claim exists after its pod was deleted: %v %v", claims.Items, err)
		}
		return ""
	})
}

// testOnePod: a second pod, which bypasses the scheduler, cannot use a ReadWriteOncePod volume.
func testOnePod(t *testing.T, node *bed.Box) {
	space := namespace(t)
	d := startDriver(t, node, "one.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	claimWithMode(t, space, "disk", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("disk", 16<<20)},
		corev1.PersistentVolumeFilesystem, corev1.ReadWriteOncePod)
	create(t, space, podWithVolume("one", node.Name(), fromClaim("disk")))
	awaitPod(t, space, "one", 2*timeout, ready)
	if calls := d.calls("NodePublishVolume"); len(calls) != 1 || calls[0].VolumeCapability.AccessMode.Mode != "SINGLE_NODE_SINGLE_WRITER" {
		t.Errorf("published with %+v", calls)
	}
	second := podWithVolume("two", node.Name(), fromClaim("disk"))
	second.Spec.NodeName = node.Name()
	create(t, space, second)
	awaitEvent(t, space, "two", "volume uses the ReadWriteOncePod access mode and is already in use by another pod")
	deletePod(t, space, "one")
	awaitPod(t, space, "two", timeoutFor(2*timeout, 8*timeout), ready)
	deletePod(t, space, "two")
	eventually(t, 2*timeout, d.stagedOrPublished)
}

// testRepublish: a volume is republished periodically, with tokens for the driver's current
// audiences.
func testRepublish(t *testing.T, node *bed.Box) {
	space := namespace(t)
	d := startDriver(t, node, "republish.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{
		AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true), RequiresRepublish: ptr.To(true),
		TokenRequests: []storagev1.TokenRequest{{Audience: "first", ExpirationSeconds: ptr.To[int64](600)}},
	})
	awaitDriver(t, d)
	create(t, space, podWithVolume("pod", node.Name(), corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: d.name}}))
	was := awaitPod(t, space, "pod", 2*timeout, ready)
	if got := audiences(t, d); len(got) != 1 || !got["first"] {
		t.Fatalf("published with tokens for %v", got)
	}
	inPod(t, node, space, "pod", "echo kept > /data/file")
	_, err := client().StorageV1().CSIDrivers().Patch(t.Context(), d.name, types.MergePatchType,
		[]byte(`{"spec":{"tokenRequests":[{"audience":"first","expirationSeconds":600},{"audience":"second"}]}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 4*time.Minute, func() string {
		if got := audiences(t, d); !got["first"] || !got["second"] {
			return fmt.Sprintf("last published with tokens for %v", got)
		}
		return ""
	})
	checkSameContainers(t, was, awaitPod(t, space, "pod", timeout, ready))
	inPod(t, node, space, "pod", `test "$(cat /data/file)" = kept`)
	deletePod(t, space, "pod")
	eventually(t, 2*timeout, d.stagedOrPublished)
}

// audiences returns the audiences of the last published tokens, and whether each token is valid.
func audiences(t *testing.T, d *csiDriver) map[string]bool {
	t.Helper()
	calls := d.calls("NodePublishVolume")
	if len(calls) == 0 {
		return nil
	}
	var tokens map[string]struct {
		Token               string
		ExpirationTimestamp time.Time
	}
	if err := json.Unmarshal([]byte(calls[len(calls)-1].VolumeContext["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for audience, token := range tokens {
		all[audience] = token.Token != "" && token.ExpirationTimestamp.After(time.Now())
	}
	return all
}
