package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// TestCSIAttach uses a volume that must be attached; the test acts as the driver's controller. The pod
// is deleted while the agent is down: the volume stays attached until the next agent has unmounted it.
func TestCSIAttach(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "attach")
	space := namespace(t)
	d := startDriver(t, node, "attach.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)})
	awaitDriver(t, d)
	claim(t, space, "disk", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("disk", 1<<20)}, corev1.PersistentVolumeFilesystem)
	create(t, space, podWithVolume("one", node.Name(), fromClaim("disk")))

	attachment := awaitAttachment(t, node.Name())
	if pod := awaitPod(t, space, "one", timeout, func(p *corev1.Pod) string { return "" }); pod.Status.Phase != corev1.PodPending || len(d.calls("NodeStageVolume")) > 0 {
		t.Errorf("the pod did not wait for the attachment: %s", pod.Status.Phase)
	}
	attach(t, attachment)
	awaitPod(t, space, "one", 2*timeout, ready)
	for _, method := range []string{"NodeStageVolume", "NodePublishVolume"} {
		if calls := d.calls(method); len(calls) == 0 || calls[0].PublishContext["slot"] != "7" {
			t.Errorf("%s with %+v", method, calls)
		}
	}
	name := corev1.UniqueVolumeName("kubernetes.io/csi/" + d.name + "^" + d.calls("NodeStageVolume")[0].VolumeID)
	awaitInUse(t, node.Name(), name, true)

	history := record[storagev1.VolumeAttachment](t, attachments(), attachment.Name)
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := client().CoreV1().Pods(space).Delete(t.Context(), "one", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "one", timeout, gone)
	for _, a := range history() {
		if a == nil || a.DeletionTimestamp != nil {
			t.Error("the volume was detached from a node that still uses it")
		}
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	eventually(t, timeoutFor(2*timeout, 5*timeout), d.leftovers)
	eventually(t, timeout, d.stagedOrPublished)
	awaitInUse(t, node.Name(), name, false)
	eventually(t, timeoutFor(2*timeout, 5*timeout), func() string {
		_, err := client().StorageV1().VolumeAttachments().Get(t.Context(), attachment.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the volume is still attached: %v", err)
		}
		return ""
	})
}

// awaitAttachment waits for a VolumeAttachment for the node.
func awaitAttachment(t *testing.T, node string) (wanted *storagev1.VolumeAttachment) {
	t.Helper()
	eventually(t, 2*timeout, func() string {
		list, err := client().StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		i := slices.IndexFunc(list.Items, func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node })
		if i < 0 {
			return "there is no VolumeAttachment for the node"
		}
		wanted = &list.Items[i]
		return ""
	})
	return wanted
}

// attach marks the volume as attached.
func attach(t *testing.T, wanted *storagev1.VolumeAttachment) {
	t.Helper()
	wanted.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"slot": "7"}}
	if _, err := client().StorageV1().VolumeAttachments().UpdateStatus(t.Context(), wanted, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func attachments() listWatch {
	return listWatch{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client().StorageV1().VolumeAttachments().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client().StorageV1().VolumeAttachments().Watch(ctx, o)
		},
	}
}

// awaitInUse waits until the volume is, or is not, in the node's volumesInUse.
func awaitInUse(t *testing.T, node string, name corev1.UniqueVolumeName, want bool) {
	t.Helper()
	awaitNode(t, node, 2*timeout, func(n *corev1.Node) string {
		if slices.Contains(n.Status.VolumesInUse, name) != want {
			return fmt.Sprintf("volumesInUse is %v; contains %s: want %v", n.Status.VolumesInUse, name, want)
		}
		return ""
	})
}
