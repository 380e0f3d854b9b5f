package path

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// devices is a fake of the device manager. It has the devices that no pod of w.awaited waits for.
type devices struct{ w *testNode }

func (d devices) Prepare(_ context.Context, p *v1.Pod, _ *pod.Observed) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.prepared[p.Name]++
	if err := d.w.faults.resources; err != nil {
		return err
	}
	if device := d.w.awaited[p.Name]; device != "" {
		return &pod.WaitError{Waiting: pod.Waiting{Reason: pod.ReasonWaitingForDevice, Message: "no " + device}}
	}
	return nil
}

func (devices) ContainerOptions(context.Context, *v1.Pod, *v1.Container) (runtime.ContainerOptions, error) {
	return runtime.ContainerOptions{}, nil
}
func (devices) Release(context.Context, pod.Ref) error     { return nil }
func (devices) Health(*v1.Pod, string) []v1.ResourceStatus { return nil }

// setAwaited sets the device that a pod waits for, "" for none, and wakes the pod.
func (w *testNode) setAwaited(name, device string) {
	w.mu.Lock()
	w.awaited[name] = device
	w.mu.Unlock()
	for _, p := range w.store.list() {
		if p.Name == name {
			w.agent.workers.Wake(p.UID)
		}
	}
	w.settle()
}

const podWithInit = `
metadata: {name: web}
spec:
  initContainers: [{name: init, image: 'app:1'}]
  containers: [{name: main, image: 'app:1'}]
`

// A pod waits for a device for as long as it takes. It shows what it waits for, and nothing of it is
// started or tried again in the meantime.
func TestPodWaitsForDevice(t *testing.T) {
	onTestNode(t, func(w *testNode) {
		w.setAwaited("web", "gpu")
		w.apply([]byte(podWithInit))
		w.settle()
		tries := w.prepared["web"]
		w.pass(time.Hour)
		w.expect(w.showStatus(), []string{"web Pending", "  init waiting WaitingForDevice, 0 restarts", "  main waiting PodInitializing, 0 restarts"})
		message := w.store.list()[0].Status.InitContainerStatuses[0].State.Waiting.Message
		if w.prepared["web"] != tries || message != "no gpu" {
			t.Errorf("tried %d more times within an hour, the status says %q", w.prepared["web"]-tries, message)
		}
		if calls := w.runtime.Count("RunPodSandbox"); calls != 0 {
			t.Errorf("%d calls of RunPodSandbox", calls)
		}
		w.setAwaited("web", "nic")
		if got := w.store.list()[0].Status.InitContainerStatuses[0].State.Waiting.Message; got != "no nic" {
			t.Errorf("the status says %q, want another device", got)
		}
		w.exits["init"] = 0
		w.setAwaited("web", "")
		w.expect(w.showStatus(), []string{"web Running ready", "  init terminated 0 Completed, 0 restarts", "  main running, 0 restarts"})
	})
}

func TestPodDeletedWhileItWaitsForDevice(t *testing.T) {
	onTestNode(t, func(w *testNode) {
		w.setAwaited("web", "gpu")
		w.apply([]byte(podWithInit))
		w.settle()
		if err := w.store.delete("web", 30); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.expect(w.showStatus(), nil)
	})
}
