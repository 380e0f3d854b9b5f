package limits

import (
	"context"
	"fmt"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// cluster is a kubelet that is connected to an API server.
type cluster struct {
	*node
	pods corev1.PodInterface
}

// startCluster starts a kubelet with kubeletConfig and config. It is stopped with the test, and so
// are its pods.
func startCluster(t *testing.T, config string) *cluster {
	t.Helper()
	skipUnlessOnMachine(t, true)
	admin, err := clientcmd.BuildConfigFromFlags("", os.Getenv(envAdmin))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{startKubelet(t, config, "--kubeconfig="+os.Getenv(envNode)), client.CoreV1().Pods("default")}
}

// create creates a pod and deletes it when the test ends.
func (c *cluster) create(manifest string) {
	c.t.Helper()
	var p v1.Pod
	if err := yaml.Unmarshal([]byte(manifest), &p); err != nil {
		c.t.Fatal(err)
	}
	p.Spec.NodeName = nodeName
	err := c.kubelet.await(func() error { // until the service account exists
		_, err := c.pods.Create(c.t.Context(), &p, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		// The test's context is already cancelled.
		if err := c.pods.Delete(context.Background(), p.Name, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
	})
}

// awaitPod waits until the check passes for the pod, as the API server returns it.
func (c *cluster) awaitPod(name string, check func(*v1.Pod) error) (p *v1.Pod) {
	c.t.Helper()
	err := c.kubelet.await(func() (err error) {
		if p, err = c.pods.Get(c.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(p)
	})
	if err != nil {
		c.t.Fatalf("pod %s: %v", name, err)
	}
	return p
}

// resize changes a pod's resources in place and waits until the kubelet has applied them.
func (c *cluster) resize(name, spec string) *v1.Pod {
	c.t.Helper()
	patch, err := yaml.YAMLToJSON([]byte("spec: {" + spec + "}"))
	if err != nil {
		c.t.Fatal(err)
	}
	requested, err := c.pods.Patch(c.t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	if err != nil {
		c.t.Fatal(err)
	}
	return c.awaitPod(name, func(p *v1.Pod) error { return resized(requested, p) })
}

// resized returns what is missing for the resize to be complete.
func resized(requested, p *v1.Pod) error {
	if p.Status.ObservedGeneration < requested.Generation {
		return fmt.Errorf("generation %d is not observed", requested.Generation)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
			return fmt.Errorf("%s: %s %s", c.Type, c.Reason, c.Message)
		}
	}
	for i, s := range p.Status.ContainerStatuses {
		for resource, want := range requested.Spec.Containers[i].Resources.Limits {
			if have := s.Resources.Limits[resource]; have.Cmp(want) != 0 {
				return fmt.Errorf("container %s has %s of %s, not %s", s.Name, have.String(), resource, want.String())
			}
		}
	}
	return running(p)
}
