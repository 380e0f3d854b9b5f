package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNode wants the Node object to say what the recorded one says.
func TestNode(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	want := portable(t, recorded(t, "node.yaml"))
	object := awaitNode(t, node.Name(), usual, func(n *corev1.Node) string {
		n = n.DeepCopy()
		n.APIVersion, n.Kind, n.ManagedFields = "v1", "Node", nil
		n.Status.Images = slices.DeleteFunc(n.Status.Images, ofTests)
		return difference(want, portable(t, facts(t, n, node.Address())))
	})
	if object.Status.Allocatable.Memory().Cmp(*object.Status.Capacity.Memory()) >= 0 {
		t.Errorf("memory: allocatable %s is not less than the capacity %s by what eviction keeps free",
			object.Status.Allocatable.Memory(), object.Status.Capacity.Memory())
	}
	for _, image := range object.Status.Images {
		if image.SizeBytes <= 0 {
			t.Errorf("image %v has size %d", image.Names, image.SizeBytes)
		}
	}
}

// ofTests holds for an image that a test pulled from a registry of its own: that has a port.
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
	if diff := difference(recorded(t, "lease.yaml"), facts(t, lease, node.Address())); diff != "" {
		t.Error(diff)
	}
}

// portable replaces what depends on the machine, the kernel and the images at hand.
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
