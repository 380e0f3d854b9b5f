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
	resourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"swiftlet/test/bed"
)

const sample = "swiftlet.dev/sample"

// devicePlugin is test/deviceplugin, a real plugin in a process of its own on a node.
type devicePlugin struct {
	t    *testing.T
	node *bed.Box
	args []string
	kill context.CancelFunc // ends it without warning
	done chan struct{}
}

var buildPlugin = builderOf("deviceplugin")

// pluginState is where the plugin keeps its devices on a node.
const pluginState = "/var/lib/kubelet/plugins/sample"

// startPlugin runs a plugin with devices a and b on the node until the test ends.
func startPlugin(t *testing.T, node *bed.Box, args ...string) *devicePlugin {
	t.Helper()
	program, err := buildPlugin()
	if err != nil {
		t.Fatal("build the plugin:", err)
	}
	p := &devicePlugin{t: t, node: node, args: append([]string{program, "-resource", sample, "-state", pluginState}, args...)}
	p.set("a", "Healthy")
	p.set("b", "Healthy")
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start runs the program; one that was stopped is started again the same way.
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

// set says how a device is.
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

// awaitDevices waits until the Node shows so many devices. The reference tells of a change
// with its next look at the node, every ten seconds.
func (p *devicePlugin) awaitDevices(capacity, allocatable int64) {
	p.t.Helper()
	awaitNode(p.t, p.node.Name(), usual, func(n *corev1.Node) string {
		has, gives := n.Status.Capacity[sample], n.Status.Allocatable[sample]
		if has.Value() != capacity || gives.Value() != allocatable {
			return fmt.Sprintf("node has %s and gives %s of %s, want %d and %d", has.String(), gives.String(), sample, capacity, allocatable)
		}
		return ""
	})
}

// wanting is a pod that asks for devices. It goes to the node whether that has them or not.
func wanting(name, node string, count int64) *corev1.Pod {
	pod := sleeper(name, node)
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{sample: *resource.NewQuantity(count, resource.DecimalSI)}
	return pod
}

// deviceOf is what the node says that the pod has, once it knows the pod.
func deviceOf(t *testing.T, node *bed.Box, space, pod string) string {
	t.Helper()
	client := resourcesv1.NewPodResourcesListerClient(socket(t, node, "pod-resources/kubelet.sock"))
	var all []string
	eventually(t, usual, func() string {
		answer, err := patiently(t, client.Get, &resourcesv1.GetPodResourcesRequest{PodNamespace: space, PodName: pod})
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

// TestDevicePlugin follows a device: offered, given, sick, and kept by its pod whoever ends.
func TestDevicePlugin(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "devices")
	plugin := startPlugin(t, node, "-prefers", "b", "-prestart", "-cdi", "/var/run/cdi")
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	first := startPod(t, space, wanting("first", node.Name(), 1))
	const has = sample + "=b"
	if got := deviceOf(t, node, space, "first"); got != has {
		t.Fatalf("pod has %s, want %s, which the plugin prefers", got, has)
	}
	inPod(t, node, space, "first", `test "$SAMPLE_DEVICES" = b && test "$SAMPLE_CDI_NAME" = b && test -c /dev/sample-b &&
		test "$(cat /run/sample/b)" = b && ! touch /run/sample/b && ! test -e /dev/sample-a`)
	if want := `{"devices":["b"],"method":"Allocate"}` + "\n" + `{"devices":["b"],"method":"PreStartContainer"}` + "\n"; plugin.calls() != want {
		t.Errorf("the plugin was asked\n%s", plugin.calls())
	}
	create(t, space, wanting("greedy", node.Name(), 2))
	compareEnd(t, endView(t, node, space), space, "greedy", "devices")

	t.Run("sick", func(t *testing.T) { testSickDevice(t, plugin, space) })
	t.Run("slow", func(t *testing.T) { testSlowPlugin(t, plugin, space) })
	t.Run("plugin restarted", func(t *testing.T) {
		plugin.stop()
		plugin.awaitDevices(2, 0)
		plugin.start()
		plugin.awaitDevices(2, 2)
	})
	t.Run("agent killed", func(t *testing.T) {
		restartAgent(t, node)
		plugin.awaitDevices(2, 2)
		startPod(t, space, wanting("second", node.Name(), 1))
		if got := deviceOf(t, node, space, "second"); got != sample+"=a" {
			t.Errorf("another pod has %s", got)
		}
		remove(t, space, "second")
	})
	t.Run("both killed", func(t *testing.T) {
		plugin.stop()
		restartAgent(t, node)
		startPod(t, space, sleeper("witness", node.Name()))
		plugin.start()
		plugin.awaitDevices(2, 2)
	})
	same(t, first, awaitPod(t, space, "first", usual, ready))
	if got := deviceOf(t, node, space, "first"); got != has {
		t.Errorf("pod has %s, had %s", got, has)
	}
	awaitMetrics(t, node, nil, map[string]float64{`kubelet_device_plugin_registration_total{resource_name="` + sample + `"}`: 1})
	remove(t, space, "first")
	startPod(t, space, wanting("heir", node.Name(), 2))
}

func testSickDevice(t *testing.T, plugin *devicePlugin, space string) {
	for _, health := range []string{"Unhealthy", "Healthy"} {
		plugin.set("b", health)
		awaitPod(t, space, "first", usual, func(p *corev1.Pod) string {
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

// testSlowPlugin: while a plugin takes its time, pods that need none of its devices come and
// go. The reference asks it while it admits a pod, and all others wait.
func testSlowPlugin(t *testing.T, plugin *devicePlugin, space string) {
	if kubelet != bed.Ours {
		t.Skip("all pods wait")
	}
	hang := plugin.node.Path(filepath.Join(pluginState, "hang"))
	write(t, hang, []byte("yes"))
	create(t, space, wanting("slow", plugin.node.Name(), 1))
	eventually(t, usual, func() string {
		if text, err := os.ReadFile(hang); err != nil || string(text) != "hanging" {
			return fmt.Sprintf("the plugin is not asked: %s %v", text, err)
		}
		return ""
	})
	startPod(t, space, sleeper("other", plugin.node.Name()))
	remove(t, space, "other")
	if slow := awaitPod(t, space, "slow", usual, func(p *corev1.Pod) string { return "" }); ready(slow) == "" {
		t.Error("the pod runs without its device")
	}
	if err := os.Remove(hang); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "slow", usual, ready)
	remove(t, space, "slow")
}

// restartAgent kills the agent and starts the next one.
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

// TestDeviceReboot: a pod comes up again with its device after all of the node was down, in
// whatever order agent and plugin return. The reference sends the pod away, for it does not
// wait for the plugin.
func TestDeviceReboot(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("it rejects the pod")
	}
	t.Parallel()
	node := ownNode(t, "rebooted")
	plugin := startPlugin(t, node)
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	before := startPod(t, space, wanting("pod", node.Name(), 1))
	has := deviceOf(t, node, space, "pod")

	plugin.stop()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(before.Status.ContainerStatuses[0].ContainerID, "://")
	if _, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", id); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
		t.Fatal(err)
	}
	eventually(t, usual, func() string {
		events, err := client().CoreV1().Events(space).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=WaitingForDevicePlugin"})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprintf("nobody is told that the pod waits: %v", err)
		}
		return ""
	})
	// A pod that is new to the node waits as well.
	create(t, space, wanting("new", node.Name(), 1))
	plugin.start()
	for _, name := range []string{"pod", "new"} {
		awaitPod(t, space, name, usual, func(p *corev1.Pod) string {
			if p.Status.Phase == corev1.PodFailed {
				t.Fatalf("pod %s was sent away: %s", name, p.Status.Message)
			}
			if missing := ready(p); missing != "" {
				return missing
			}
			if name == "pod" && p.Status.ContainerStatuses[0].RestartCount != 1 {
				return "the container that was killed is still shown"
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

// TestDeviceSwap: our agent and the reference read each other's record of devices.
func TestDeviceSwap(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("both take part")
	}
	t.Parallel()
	node := ownNode(t, "device-swap")
	// Through the folder of all plugins, which both look at when they start.
	plugin := startPlugin(t, node, "-register", "/var/lib/kubelet/plugins_registry/sample-reg.sock", "-dir", pluginState)
	plugin.awaitDevices(2, 2)
	space := namespace(t)
	has := map[string]string{}
	before := map[string]*corev1.Pod{}
	check := func() {
		t.Helper()
		for name, want := range has {
			same(t, before[name], awaitPod(t, space, name, usual, ready))
			if got := deviceOf(t, node, space, name); got != want {
				t.Errorf("pod %s has %s, had %s", name, got, want)
			}
		}
	}
	for i, kind := range []bed.KubeletKind{bed.Ours, bed.Reference} {
		if i > 0 {
			swap(t, node, kind)
			plugin.awaitDevices(2, 2)
			check()
		}
		name := string("under-" + kind)
		before[name] = startPod(t, space, wanting(name, node.Name(), 1))
		has[name] = deviceOf(t, node, space, name)
	}
	if has["under-ours"] == has["under-reference"] {
		t.Fatalf("both pods have %s", has["under-ours"])
	}
	swap(t, node, bed.Ours)
	plugin.awaitDevices(2, 2)
	check()
}
