package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/config"
	"swiftlet/test/bed"
)

// TestNode compares the Node object with the recording.
func TestNode(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	want := portable(t, recorded(t, "node.yaml"))
	object := awaitNode(t, node.Name(), timeout, func(n *corev1.Node) string {
		n = n.DeepCopy()
		n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
		if n.Annotations[config.VersionAnnotation] == "" && kubelet == bed.Ours {
			return "the Node has no " + config.VersionAnnotation
		}
		delete(n.Annotations, config.VersionAnnotation)
		n.Status.Images = slices.DeleteFunc(n.Status.Images, ofTests)
		return difference(want, portable(t, normalize(t, n, node.Address())))
	})
	if object.Status.Allocatable.Memory().Cmp(*object.Status.Capacity.Memory()) >= 0 {
		t.Errorf("memory: allocatable %s is not less than capacity %s by the eviction threshold",
			object.Status.Allocatable.Memory(), object.Status.Capacity.Memory())
	}
	for _, image := range object.Status.Images {
		if image.SizeBytes <= 0 {
			t.Errorf("image %v has size %d", image.Names, image.SizeBytes)
		}
	}
}

// ofTests reports whether a test pulled the image from its own registry, which has a port.
func ofTests(image corev1.ContainerImage) bool {
	return slices.ContainsFunc(image.Names, func(name string) bool {
		registry, _, ok := strings.Cut(name, "/")
		return ok && strings.Contains(registry, ":")
	})
}

func TestLease(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	lease, err := client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.APIVersion, lease.Kind, lease.ManagedFields = "coordination.k8s.io/v1", "Lease", nil
	if diff := difference(recorded(t, "lease.yaml"), normalize(t, lease, node.Address())); diff != "" {
		t.Error(diff)
	}
}

// portable replaces values that depend on the host, the kernel and the images.
func portable(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	status := object["status"].(map[string]any)
	for _, list := range []string{"capacity", "allocatable"} {
		quantities, _ := status[list].(map[string]any)
		for _, key := range []string{"cpu", "memory", "ephemeral-storage"} {
			if _, ok := quantities[key]; ok {
				quantities[key] = "<quantity>"
			}
		}
	}
	info, _ := status["nodeInfo"].(map[string]any)
	for _, key := range []string{"bootID", "kernelVersion", "machineID", "osImage", "systemUUID"} {
		if value, _ := info[key].(string); value != "" {
			info[key] = "<" + key + ">"
		}
	}
	images, _ := status["images"].([]any)
	for _, image := range images {
		image.(map[string]any)["sizeBytes"] = "<size>"
	}
	return object
}
