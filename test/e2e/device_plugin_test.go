package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"swiftlet/test/bed"
)

const sample = "swiftlet.dev/sample"

// devicePlugin is test/deviceplugin, a device plugin in its own process on a node.
type devicePlugin struct {
	t    *testing.T
	node *bed.Box
	args []string
	kill context.CancelFunc // sends SIGKILL
	done chan struct{}
}

var buildPlugin = builderOf("deviceplugin")

// pluginState is the plugin's state directory on a node.
const pluginState = "/var/lib/kubelet/plugins/sample"

// startPlugin runs a plugin with devices a and b on the node until the test ends.
func startPlugin(t *testing.T, node *bed.Box, args ...string) *devicePlugin {
	t.Helper()
	program, err := buildPlugin()
	if err != nil {
		t.Fatal("build plugin:", err)
	}
	p := &devicePlugin{t: t, node: node, args: append([]string{program, "-resource", sample, "-state", pluginState}, args...)}
	p.set("a", "Healthy")
	p.set("b", "Healthy")
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start starts the plugin, also after stop.
func (p *devicePlugin) start() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := p.node.Command(ctx, p.args...)
	log, err := os.OpenFile(p.node.Log("deviceplugin"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		cancel()
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		cancel()
		p.t.Fatal(err)
	}
	p.kill, p.done = cancel, make(chan struct{})
	go func() { defer close(p.done); _ = cmd.Wait() }()
}

func (p *devicePlugin) stop() { p.kill(); <-p.done }

// set sets the health of a device.
func (p *devicePlugin) set(device, health string) {
	p.t.Helper()
	file := p.node.Path(filepath.Join(pluginState, "devices", device))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	write(p.t, file, []byte(health))
}

func (p *devicePlugin) calls() string {
	text, _ := os.ReadFile(p.node.Path(filepath.Join(pluginState, "calls.jsonl")))
	return string(text)
}

// awaitDevices waits until the Node has this capacity and allocatable. The reference updates them
// every ten seconds.
func (p *devicePlugin) awaitDevices(capacity, allocatable int64) {
	p.t.Helper()
	awaitNode(p.t, p.node.Name(), timeout, func(n *corev1.Node) string {
		has, gives := n.Status.Capacity[sample], n.Status.Allocatable[sample]
		if has.Value() != capacity || gives.Value() != allocatable {
			return fmt.Sprintf("capacity %s, allocatable %s of %s, want %d and %d", has.String(), gives.String(), sample, capacity, allocatable)
		}
		return ""
	})
}

// podWithDevices is a pod that requests devices. It bypasses the scheduler.
func podWithDevices(name, node string, count int64) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{sample: *resource.NewQuantity(count, resource.DecimalSI)}
	return pod
}

// deviceOf returns the pod's devices in the PodResources API, once it has the pod.
func deviceOf(t *testing.T, node *bed.Box, space, pod string) string {
	t.Helper()
	client := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	var all []string
	eventually(t, timeout, func() string {
		answer, err := retryRateLimited(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: pod})
		if err != nil {
			return err.Error()
		}
		for _, d := range answer.PodResources.Containers[0].Devices {
			all = append(all, d.ResourceName+"="+strings.Join(d.DeviceIds, ","))
		}
		return ""
	})
	return strings.Join(all, " ")
}

// TestDevicePlugin checks registration, allocation and health of devices, and that a pod keeps its
// device when plugin or agent restart.
func TestDevicePlugin(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "devices")
	plugin := startPlugin(t, node, "-prefers", "b", "-prestart", "-cdi", "/var/run/cdi")
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	first := startPod(t, space, podWithDevices("first", node.Name(), 1))
	const has = sample + "=b"
	if got := deviceOf(t, node, space, "first"); got != has {
		t.Fatalf("pod has %s, want the preferred device %s", got, has)
	}
	inPod(t, node, space, "first", `test "$SAMPLE_DEVICES" = b && test "$SAMPLE_CDI_NAME" = b && test -c /dev/sample-b &&
		test "$(cat /run/sample/b)" = b && ! touch /run/sample/b && ! test -e /dev/sample-a`)
	if want := `{"devices":["b"],"method":"Allocate"}` + "\n" + `{"devices":["b"],"method":"PreStartContainer"}` + "\n"; plugin.calls() != want {
		t.Errorf("calls of the plugin:\n%s", plugin.calls())
	}
	create(t, space, podWithDevices("greedy", node.Name(), 2))
	compareFinalState(t, finalStateView(t, node, space), space, "greedy", "devices")

	t.Run("unhealthy device", func(t *testing.T) { testSickDevice(t, plugin, space) })
	t.Run("plugin hangs", func(t *testing.T) { testSlowPlugin(t, plugin, space) })
	t.Run("plugin restarted", func(t *testing.T) {
		plugin.stop()
		plugin.awaitDevices(2, 0)
		plugin.start()
		plugin.awaitDevices(2, 2)
	})
	t.Run("agent killed", func(t *testing.T) {
		restartAgent(t, node)
		plugin.awaitDevices(2, 2)
		startPod(t, space, podWithDevices("second", node.Name(), 1))
		if got := deviceOf(t, node, space, "second"); got != sample+"=a" {
			t.Errorf("the second pod has %s", got)
		}
		deletePod(t, space, "second")
	})
	t.Run("plugin and agent killed", func(t *testing.T) {
		plugin.stop()
		restartAgent(t, node)
		startPod(t, space, sleeper("witness", node.Name()))
		plugin.start()
		plugin.awaitDevices(2, 2)
	})
	checkSameContainers(t, first, awaitPod(t, space, "first", timeout, ready))
	if got := deviceOf(t, node, space, "first"); got != has {
		t.Errorf("pod has %s, had %s", got, has)
	}
	awaitMetrics(t, node, nil, map[string]float64{`kubelet_device_plugin_registration_total{resource_name="` + sample + `"}`: 1})
	deletePod(t, space, "first")
	startPod(t, space, podWithDevices("heir", node.Name(), 2))
}

func testSickDevice(t *testing.T, plugin *devicePlugin, space string) {
	for _, health := range []string{"Unhealthy", "Healthy"} {
		plugin.set("b", health)
		awaitPod(t, space, "first", timeout, func(p *corev1.Pod) string {
			all := p.Status.ContainerStatuses[0].AllocatedResourcesStatus
			want := corev1.ResourceHealth{ResourceID: "b", Health: corev1.ResourceHealthStatus(health)}
			if len(all) != 1 || all[0].Name != sample || len(all[0].Resources) != 1 || all[0].Resources[0] != want {
				return fmt.Sprintf("status shows %+v, want %+v", all, want)
			}
			return ""
		})
		plugin.awaitDevices(2, map[string]int64{"Healthy": 2, "Unhealthy": 1}[health])
	}
}

// testSlowPlugin: while a plugin hangs, pods without its devices start and stop. The reference calls
// the plugin during admission, and all other pods wait.
func testSlowPlugin(t *testing.T, plugin *devicePlugin, space string) {
	if kubelet != bed.Ours {
		t.Skip("all pods wait with the reference")
	}
	hang := plugin.node.Path(filepath.Join(pluginState, "hang"))
	write(t, hang, []byte("yes"))
	create(t, space, podWithDevices("slow", plugin.node.Name(), 1))
	eventually(t, timeout, func() string {
		if text, err := os.ReadFile(hang); err != nil || string(text) != "hanging" {
			return fmt.Sprintf("the plugin was not called: %s %v", text, err)
		}
		return ""
	})
	startPod(t, space, sleeper("other", plugin.node.Name()))
	deletePod(t, space, "other")
	if slow := awaitPod(t, space, "slow", timeout, func(p *corev1.Pod) string { return "" }); ready(slow) == "" {
		t.Error("the pod runs without its device")
	}
	if err := os.Remove(hang); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "slow", timeout, ready)
	deletePod(t, space, "slow")
}

// restartAgent kills the agent and starts it again.
func restartAgent(t *testing.T, node *bed.Box) {
	t.Helper()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDeviceReboot: after a reboot of the node a pod starts again with its device, whether agent or
// plugin starts first. The reference does not wait for the plugin and rejects the pod.
func TestDeviceReboot(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("the reference rejects the pod")
	}
	t.Parallel()
	node := ownNode(t, "rebooted")
	plugin := startPlugin(t, node)
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	before := startPod(t, space, podWithDevices("pod", node.Name(), 1))
	has := deviceOf(t, node, space, "pod")

	plugin.stop()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(before.Status.ContainerStatuses[0].ContainerID, "://")
	if _, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", id); err != nil {
		t.Fatal(err)
	}
	// After a reboot nothing runs when the agent starts. CRI reports the exit later than `ctr tasks`.
	runtime := runtimeOf(t, node)
	eventually(t, timeout, func() string {
		containers, err := runtime.ListContainers(t.Context(), &runtimeapi.ContainerFilter{Id: id})
		if err != nil {
			return err.Error()
		}
		if len(containers) != 1 || containers[0].State != runtimeapi.ContainerState_CONTAINER_EXITED {
			return fmt.Sprintf("the killed container has not exited: %v", containers)
		}
		return ""
	})
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	eventually(t, timeout, func() string {
		events, err := client().CoreV1().Events(space).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=WaitingForDevicePlugin"})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprintf("there is no event WaitingForDevicePlugin: %v", err)
		}
		return ""
	})
	// A new pod waits as well.
	create(t, space, podWithDevices("new", node.Name(), 1))
	plugin.start()
	for _, name := range []string{"pod", "new"} {
		awaitPod(t, space, name, timeout, func(p *corev1.Pod) string {
			if p.Status.Phase == corev1.PodFailed {
				t.Fatalf("pod %s was rejected: %s", name, p.Status.Message)
			}
			if missing := ready(p); missing != "" {
				return missing
			}
			if name == "pod" && p.Status.ContainerStatuses[0].RestartCount != 1 {
				return "the status still has the killed container"
			}
			return ""
		})
	}
	if got := deviceOf(t, node, space, "pod"); got != has {
		t.Errorf("pod has %s, had %s", got, has)
	}
	if other := deviceOf(t, node, space, "new"); other == has {
		t.Errorf("both have %s", has)
	}
}

// TestDeviceCrashWithoutPlugin: after a restart of the agent, while a plugin is absent, crashed
// containers start again: one with its device, and one of the same pod that has none.
func TestDeviceCrashWithoutPlugin(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "device-crash")
	plugin := startPlugin(t, node)
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	pod := podWithDevices("pod", node.Name(), 1)
	plain := sleeper("", "").Spec.Containers[0]
	plain.Name = "plain"
	pod.Spec.Containers = append(pod.Spec.Containers, plain)
	before := startPod(t, space, pod)
	has := deviceOf(t, node, space, "pod")

	plugin.stop()
	restartAgent(t, node)
	startPod(t, space, sleeper("witness", node.Name())) // the agent has synced the older pod
	for _, container := range before.Status.ContainerStatuses {
		_, id, _ := strings.Cut(container.ContainerID, "://")
		if _, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", id); err != nil {
			t.Fatal(err)
		}
	}
	awaitPod(t, space, "pod", timeout, func(p *corev1.Pod) string {
		if p.Status.Phase == corev1.PodFailed {
			t.Fatalf("the pod failed: %s", p.Status.Message)
		}
		for _, container := range p.Status.ContainerStatuses {
			if container.RestartCount == 0 || container.State.Running == nil {
				return fmt.Sprintf("container %s was restarted %d times: %+v", container.Name, container.RestartCount, container.State)
			}
		}
		return ""
	})
	if got := deviceOf(t, node, space, "pod"); got != has {
		t.Errorf("pod has %s, had %s", got, has)
	}
}

// TestDeviceKubeletSwap: our kubelet and the reference read each other's state of devices.
func TestDeviceKubeletSwap(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("runs both kubelets")
	}
	t.Parallel()
	node := ownNode(t, "device-swap")
	// It registers through the plugin registration directory, which both read at their start.
	plugin := startPlugin(t, node, "-register", "/var/lib/kubelet/plugins_registry/sample-reg.sock", "-dir", pluginState)
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	has := map[string]string{}
	before := map[string]*corev1.Pod{}
	check := func() {
		t.Helper()
		for name, want := range has {
			checkSameContainers(t, before[name], awaitPod(t, space, name, timeout, ready))
			if got := deviceOf(t, node, space, name); got != want {
				t.Errorf("pod %s has %s, had %s", name, got, want)
			}
		}
	}
	for i, kind := range []bed.KubeletKind{bed.Ours, bed.Reference} {
		if i > 0 {
			swapKubelet(t, node, kind)
			plugin.awaitDevices(2, 2)
			check()
		}
		name := string("under-" + kind)
		before[name] = startPod(t, space, podWithDevices(name, node.Name(), 1))
		has[name] = deviceOf(t, node, space, name)
	}
	if has["under-ours"] == has["under-reference"] {
		t.Fatalf("both pods have %s", has["under-ours"])
	}
	swapKubelet(t, node, bed.Ours)
	plugin.awaitDevices(2, 2)
	check()
}
