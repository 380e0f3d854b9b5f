package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// claimDriver is test/dradriver, a DRA driver in its own process.
type claimDriver struct {
	t    *testing.T
	node *bed.Box
	name string
	args []string
	kill context.CancelFunc // sends SIGKILL
	done chan struct{}
}

var buildClaimDriver = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(cluster.Logs()), "dradriver") // removed with the bed
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../dradriver" // its own module
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return program, nil
})

// startClaimDriver runs a driver on the node until the test ends, and creates a DeviceClass with the
// driver's name.
func startClaimDriver(t *testing.T, node *bed.Box, name string, args ...string) *claimDriver {
	t.Helper()
	program, err := buildClaimDriver()
	if err != nil {
		t.Fatal("build driver:", err)
	}
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: `device.driver == "` + name + `"`}}}
	if _, err := client().ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client().ResourceV1().DeviceClasses().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	d := &claimDriver{t: t, node: node, name: name}
	d.args = append([]string{program, "-name", name, "-node", node.Name(), "-state", d.state()}, args...)
	d.start()
	t.Cleanup(func() { d.stop() })
	return d
}

func (d *claimDriver) state() string { return "/var/lib/kubelet/plugins/" + d.name }

// start starts the driver, also after stop.
func (d *claimDriver) start() {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := d.node.Command(ctx, d.args...)
	log, err := os.OpenFile(d.node.Log("dradriver"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		cancel()
		d.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		d.t.Fatal(err)
	}
	d.kill, d.done = cancel, make(chan struct{})
	go func() { defer close(d.done); _ = cmd.Wait() }()
}

func (d *claimDriver) stop() { d.kill(); <-d.done }

// read returns the content of a file that the driver has written.
func (d *claimDriver) read(name string) string {
	text, _ := os.ReadFile(d.node.Path(filepath.Join(d.state(), name)))
	return strings.TrimSpace(string(text))
}

// set writes a file of the driver, or removes it if text is empty.
func (d *claimDriver) set(name, text string) {
	d.t.Helper()
	file := d.node.Path(filepath.Join(d.state(), name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if text == "" {
		if err := os.Remove(file); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	draft := d.node.Path(filepath.Join(d.state(), "draft"))
	if err := errors.Join(os.WriteFile(draft, []byte(text), 0o644), os.Rename(draft, file)); err != nil {
		d.t.Fatal(err)
	}
}

// awaitCalls waits until the driver has received exactly these calls for a claim.
func (d *claimDriver) awaitCalls(claim string, methods ...string) {
	d.t.Helper()
	want := strings.Join(methods, " ")
	eventually(d.t, timeout, func() string {
		var calls []string
		for line := range strings.Lines(d.read("calls")) {
			if method, about, _ := strings.Cut(strings.TrimSpace(line), " "); about == claim {
				calls = append(calls, method)
			}
		}
		if got := strings.Join(calls, " "); got != want {
			return fmt.Sprintf("calls for claim %s: %s, want %s", claim, got, want)
		}
		return ""
	})
}

// awaitSlices waits until the driver's ResourceSlices for the node exist, or no longer exist.
func (d *claimDriver) awaitSlices(there bool) {
	d.t.Helper()
	selector := fields.Set{resourceapi.ResourceSliceSelectorNodeName: d.node.Name(), resourceapi.ResourceSliceSelectorDriver: d.name}.String()
	eventually(d.t, 3*timeout, func() string {
		list, err := client().ResourceV1().ResourceSlices().List(d.t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return err.Error()
		}
		if (len(list.Items) > 0) != there {
			return fmt.Sprintf("there are %d ResourceSlices", len(list.Items))
		}
		return ""
	})
}

// claimSpec requests one device of the driver's class.
func (d *claimDriver) claimSpec() resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
		{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: d.name}},
	}}}
}

// claim creates a claim for a device of the driver.
func (d *claimDriver) claim(space, name string) {
	d.t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: d.claimSpec()}
	if _, err := client().ResourceV1().ResourceClaims(space).Create(d.t.Context(), claim, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// device returns the device that is prepared for the claim, or "".
func (d *claimDriver) device(claim string) string {
	for line := range strings.Lines(d.read("prepared")) {
		if about, device, _ := strings.Cut(strings.TrimSpace(line), " "); about == claim {
			return device
		}
	}
	return ""
}

// podWithClaim returns a pod that uses a claim.
func podWithClaim(name, node, claim string) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To(claim)}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	return pod
}
