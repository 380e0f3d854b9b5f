package device

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"swiftlet/internal/pod"
)

// withLimits is a container with these limits, one of each.
func withLimits(name string, resources ...v1.ResourceName) v1.Container {
	c := v1.Container{Name: name, Resources: v1.ResourceRequirements{Limits: v1.ResourceList{}}}
	for _, r := range resources {
		c.Resources.Limits[r] = resource.MustParse("1")
	}
	return c
}

// expectWait expects that the pod waits for the resources.
func (n *node) expectWait(p *v1.Pod, resources string) {
	n.Helper()
	if err := n.admit(p); err != nil {
		n.Fatal(err)
	}
	var wait *pod.WaitError
	err := n.Prepare(n.Context(), p, &pod.Observed{})
	want := pod.Waiting{Reason: "WaitingForDevice", Message: "no device plugin offers " + resources}
	if !errors.As(err, &wait) || wait.Waiting != want {
		n.Fatalf("Prepare returned %v, want a wait with %+v", err, want)
	}
}

func (n *node) expectEvent(want string) {
	n.Helper()
	select {
	case got := <-n.events:
		if got != want {
			n.Errorf("event %q, want %q", got, want)
		}
	default:
		n.Errorf("no event, want %q", want)
	}
}

// On a lone node a pod waits for the devices that no plugin offers, and is woken with the plugin.
func TestLoneNodeWaitsForPlugin(t *testing.T) {
	n := newLoneNode(t)
	p := podOf("one", requesting("c", 1))
	for range 2 {
		n.expectWait(p, gpu)
	}
	const event = "WaitingForDevicePlugin: No device plugin offers example.com/gpu. The pod waits until one does."
	n.expectEvent(event)
	if len(n.events) != 0 {
		t.Error("a second event for the same wait")
	}
	f := n.join("gpu.sock", nil, unhealthy("a"))
	if got := <-n.woken; got != "one" {
		t.Errorf("%s was woken", got)
	}
	n.expectWait(p, gpu)
	n.list(f, device("a"))
	<-n.woken
	n.admitAndPrepare(p)
	n.expectDevices("one", "c", "a")

	// A pod that comes after the plugin has left waits too, and does not fail with time.
	n.Release("one")
	n.leave(f)
	two := podOf("two", requesting("c", 1))
	n.expectWait(two, gpu)
	n.expectEvent(event)
	n.clock.SetTime(n.clock.Now().Add(pluginGrace + time.Second))
	n.Amounts() // drops the resource
	n.expectWait(two, gpu)
	n.Release("two")
	n.join("gpu.sock", nil, device("a"))
	if len(n.woken) != 0 {
		t.Errorf("%s was woken, which has been deleted", <-n.woken)
	}
}

func TestLoneNodeWaitsForAllResources(t *testing.T) {
	n := newLoneNode(t)
	n.join("gpu.sock", nil, device("a"))
	p := podOf("one", withLimits("main", gpu, "example.com/nic"), withLimits("other", "example.com/fpga"))
	p.Spec.InitContainers = []v1.Container{withLimits("init", "example.com/tpu")}
	n.expectWait(p, "example.com/fpga, example.com/nic, example.com/tpu")
	n.expectEvent("WaitingForDevicePlugin: No device plugin offers example.com/fpga, example.com/nic, example.com/tpu. The pod waits until one does.")
	// It keeps what it was admitted with, so that it need not fail when the rest is there.
	if err := n.admit(podOf("two", requesting("c", 1))); err == nil {
		t.Error("another pod got the device of the waiting one")
	}
}

func TestLoneNodeDoesNotWait(t *testing.T) {
	claimed := podOf("one", withLimits("c", gpu))
	claimed.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{
		RequestMappings: []v1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: gpu, RequestName: "r"}},
	}
	none := podOf("one", v1.Container{Name: "c", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{gpu: resource.MustParse("0")}}})
	running := &pod.Observed{Containers: []pod.Container{{Name: "c", State: pod.Running}}}
	for name, c := range map[string]struct {
		pod      *v1.Pod
		observed *pod.Observed
	}{
		"resources that are no devices":    {podOf("one", withLimits("c", "cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "kubernetes.io/batch-cpu")), &pod.Observed{}},
		"device of a resource claim":       {claimed, &pod.Observed{}},
		"zero devices":                     {none, &pod.Observed{}},
		"running container without device": {podOf("one", withLimits("c", gpu)), running},
	} {
		t.Run(name, func(t *testing.T) {
			n := newLoneNode(t)
			if err := n.admit(c.pod); err != nil {
				t.Fatal(err)
			}
			if err := n.Prepare(t.Context(), c.pod, c.observed); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("device allocated before, plugin left", func(t *testing.T) {
		n := newLoneNode(t)
		f := n.join("gpu.sock", nil, device("a"))
		p := podOf("one", requesting("c", 1))
		n.admitAndPrepare(p)
		n.leave(f)
		n.admitAndPrepare(p)
	})
}

// With a scheduler, the kubelet starts a pod without a device that is not known, as the reference
// does.
func TestUnknownResourceWithScheduler(t *testing.T) {
	n := newNode(t)
	n.admitAndPrepare(podOf("one", requesting("c", 1)))
	n.expectDevices("one", "c", "")
	n.join("gpu.sock", &pluginapi.DevicePluginOptions{}, device("a"))
	if len(n.woken) != 0 {
		t.Error("a pod was woken")
	}
}
