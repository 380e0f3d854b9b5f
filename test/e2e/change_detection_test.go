package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestChangeDetection checks that files follow their objects on nodes whose change detection strategy
// is not Watch. One of the nodes also has no attach/detach controller.
func TestChangeDetection(t *testing.T) {
	t.Parallel()
	for strategy, attaching := range map[string]bool{"Cache": true, "Get": false} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			node := configuredNode(t, "by-"+map[bool]string{true: "cache", false: "get"}[attaching],
				fmt.Sprintf("{configMapAndSecretChangeDetectionStrategy: %s, enableControllerAttachDetach: %v}", strategy, attaching))
			in := namespace(t)
			change := startReader(t, in, node)
			if strategy == "Cache" {
				testObjectTTL(t, in, node)
			}
			testAttaching(t, in, node, attaching)
			change("new", 6*timeout)
		})
	}
}

// TestSyncFrequency: without watches, files follow their objects at every syncFrequency. The second
// change comes right after a read, so it would be late with the default of a minute.
func TestSyncFrequency(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "frequent", "{configMapAndSecretChangeDetectionStrategy: Get, syncFrequency: 5s}")
	change := startReader(t, namespace(t), node)
	change("first", 30*time.Second)
	change("second", 30*time.Second)
}

// startReader starts a pod that mounts a Secret. The returned function changes the Secret and waits
// until the mounted file has changed.
func startReader(t *testing.T, in string, node *bed.Box) (change func(value string, within time.Duration)) {
	t.Helper()
	api := client().CoreV1().Secrets(in)
	secret, err := api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "changing"}, StringData: map[string]string{"key": "old"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := startPod(t, in, addVolume(sleeper("reader", node.Name()), "secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "changing"}}, ""))
	file := node.Inside(filepath.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~secret/secret/key"))
	holds := func(want string) string {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			return fmt.Sprintf("the file contains %q (%v), want %s", got, err, want)
		}
		return ""
	}
	if missing := holds("old"); missing != "" {
		t.Error(missing)
	}
	return func(value string, within time.Duration) {
		t.Helper()
		secret.StringData = map[string]string{"key": value}
		if secret, err = api.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, within, func() string { return holds(value) })
	}
}

// testObjectTTL: the controller manager sets the TTL of cached objects to 0 on nodes of a small cluster, so a
// restarted container sees the latest value.
func testObjectTTL(t *testing.T, in string, node *bed.Box) {
	t.Helper()
	const ttl = "node.alpha.kubernetes.io/ttl"
	eventually(t, timeout, func() string {
		got, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
		if err != nil || got.Annotations[ttl] != "0" {
			return fmt.Sprintf("annotation %s is %q (%v), want 0", ttl, got.Annotations[ttl], err)
		}
		return ""
	})
	api := client().CoreV1().ConfigMaps(in)
	object, err := api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ttl"}, Data: map[string]string{"KEY": "old"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := scripted("restarts", node.Name(), `echo "value $KEY"; until [ -e /exit ]; do sleep 0.1; done`)
	p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ttl"}}}}
	startPod(t, in, p)
	object.Data["KEY"] = "new"
	if _, err = api.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "-n", in, "exec", "restarts", "--", "touch", "/exit")
	awaitPod(t, in, "restarts", timeout, func(p *corev1.Pod) string {
		if p.Status.ContainerStatuses[0].RestartCount == 0 {
			return "the container has not restarted"
		}
		return ready(p)
	})
	if got := kubectl(t, "-n", in, "logs", "restarts"); got != "value new\n" {
		t.Errorf("the restarted container logged %q, want the new value", got)
	}
}

// testAttaching checks the node's annotation about attaching, and that a volume that needs no
// attaching works in both modes.
func testAttaching(t *testing.T, in string, node *bed.Box, attaching bool) {
	t.Helper()
	got, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value := got.Annotations["volumes.kubernetes.io/controller-managed-attach-detach"]; (value == "true") != attaching {
		t.Errorf("annotation controller-managed-attach-detach is %q, want %v", value, attaching)
	}
	d := startDriver(t, node, node.Name()+".csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	awaitDriver(t, d)
	claim(t, in, "disk", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("disk", 16<<20)}, corev1.PersistentVolumeFilesystem)
	create(t, in, podWithVolume("pod", node.Name(), fromClaim("disk")))
	awaitPod(t, in, "pod", timeoutFor(2*timeout, 5*timeout), ready)
	deletePod(t, in, "pod")
	eventually(t, 2*timeout, d.leftovers)
	testUnattachable(t, in, node, attaching)
}

// testUnattachable uses a volume that must be attached on a node without an attach/detach controller:
// a node may not create the VolumeAttachment itself, and reports that.
func testUnattachable(t *testing.T, in string, node *bed.Box, attaching bool) {
	t.Helper()
	if attaching {
		return // TestCSIAttach
	}
	d := startDriver(t, node, "attach."+node.Name()+".csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)})
	awaitDriver(t, d)
	claim(t, in, "far", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("far", 16<<20)}, corev1.PersistentVolumeFilesystem)
	create(t, in, podWithVolume("waits", node.Name(), fromClaim("far")))
	awaitEvent(t, in, "waits", map[bed.KubeletKind]string{
		bed.Ours:      `MountVolume.WaitForAttach failed for volume "` + in + `-far" : `,
		bed.Reference: `AttachVolume.Attach failed for volume "` + in + `-far" : `,
	}[kubelet])
	if len(d.calls("NodeStageVolume")) > 0 {
		t.Error("the volume was staged without being attached")
	}
	if err := client().CoreV1().Pods(in).Delete(context.WithoutCancel(t.Context()), "waits", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, in, "waits", 2*timeout, gone)
	eventually(t, 2*timeout, d.leftovers)
}
