package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// picky is the configuration of a node that has many reasons to reject a pod.
const picky = `
cpuManagerPolicy: static
topologyManagerPolicy: single-numa-node
systemReserved: {cpu: 500m, memory: 100Mi}
featureGates:
  RestartAllContainersOnContainerExits: false
  PodLevelResources: false
  InPlacePodLevelResourcesVerticalScaling: false
  PodLevelResourcesFixDefaulting: false
  PodLevelResourcesFixKubeletQOSClass: false
`

const (
	// gadget is a resource that only the Node object knows.
	gadget = "swiftlet.dev/gadget"
	// wantedLabel is a label of the node that pods select.
	wantedLabel = "swiftlet.dev/wanted"
)

// untilFailed is a script that runs until it is told to end, and then fails: the reference
// says of a pod whose containers exit with 0 that it has succeeded.
const untilFailed = "trap 'exit 3' TERM; while :; do sleep 3600 & wait; done"

// pinned is a static pod that selects the label of the node.
const pinned = `
apiVersion: v1
kind: Pod
metadata: {name: pinned, namespace: kube-system}
spec:
  nodeSelector: {` + wantedLabel + `: "yes"}
  containers:
  - {name: c, image: "` + images.Busybox + `", command: [sh, -c, "` + untilFailed + `"]}
`

// rejectable are pods that the node rejects, each for a reason of its own.
var rejectable = map[string]func(*corev1.Pod){
	"cpu":     func(p *corev1.Pod) { asksFor(p, "cpu", "1000") },
	"memory":  func(p *corev1.Pod) { asksFor(p, "memory", "1Pi") },
	"storage": func(p *corev1.Pod) { asksFor(p, "ephemeral-storage", "1Pi") },
	"gadgets": func(p *corev1.Pod) { limitedTo(p, gadget, "2") },
	// The CPU manager sees that there are not so many CPUs before anyone else does.
	"topology": func(p *corev1.Pod) { limitedTo(p, "cpu", "1000", "memory", "32Mi") },
	"init-containers": func(p *corev1.Pod) {
		asksFor(p, "cpu", "1000")
		sidecar := p.Spec.Containers[0]
		sidecar.Name, sidecar.RestartPolicy = "sidecar", ptr.To(corev1.ContainerRestartPolicyAlways)
		first := p.Spec.Containers[0]
		first.Name = "first"
		p.Spec.InitContainers = []corev1.Container{first, sidecar}
	},
	"host-network": func(p *corev1.Pod) { p.Spec.HostNetwork = true; asksFor(p, "cpu", "1000") },
	"selector":     func(p *corev1.Pod) { p.Spec.NodeSelector["swiftlet.dev/absent"] = "yes" },
	"host-port":    func(p *corev1.Pod) { p.Spec.Containers[0].Ports = hostPort },
	"os-label":     func(p *corev1.Pod) { p.Labels = map[string]string{corev1.LabelOSStable: "windows"} },
	"os":           func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
	"sysctl":       forbidSysctl,
	// The scheduler knows nothing of sysctls. Its condition is there when the pod is rejected.
	"scheduled": func(p *corev1.Pod) { p.Spec.NodeName = ""; forbidSysctl(p) },
	"gated": func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "swiftlet.dev/gate"}}
		forbidSysctl(p)
	},
	"restart-all": func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{7}},
		}}
	},
	"pod-level": func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities("cpu", "10m")}
	},
	"apparmor": func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}}
	},
}

var hostPort = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 18090}}

func asksFor(p *corev1.Pod, pairs ...string) {
	p.Spec.Containers[0].Resources.Requests = quantities(pairs...)
}

func limitedTo(p *corev1.Pod, pairs ...string) {
	p.Spec.Containers[0].Resources.Limits = quantities(pairs...)
}

func forbidSysctl(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}}
}

// TestRejected: a pod that the node does not admit has the status and the events that the
// reference gives it, whatever it is rejected for. Nothing is said about containers that were
// never made, neither then nor after the agent restarts.
func TestRejected(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "picky", picky)
	space := clearedNamespace(t)
	offer(t, node)
	now := endView(t, node, space)
	running := readmitted(t, node, space)

	names := createRejectable(t, node, space)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compareEnd(t, now, space, name, name) })
	}
	t.Run("static", func(t *testing.T) { testRejectedStatic(t, node) })
	t.Run("agent restarted", func(t *testing.T) {
		restartWithoutLabel(t, node)
		t.Run("selected", func(t *testing.T) { testRejectedLater(t, space, "selected") })
		t.Run("pinned", func(t *testing.T) { testRejectedLater(t, staticNamespace, "pinned-"+node.Name()) })
		t.Run("running", func(t *testing.T) { same(t, running, awaitPod(t, space, "running", usual, ready)) })
		if kubelet == bed.Reference {
			return // after a restart it makes up an exit of each container of the others
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) { compareEnd(t, now, space, name, name) })
		}
	})
}

// createRejectable creates the pods that can be rejected on this machine.
func createRejectable(t *testing.T, node *bed.Box, space string) (names []string) {
	t.Helper()
	appArmor, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	for name, change := range rejectable {
		if name == "apparmor" && strings.HasPrefix(string(appArmor), "Y") {
			continue
		}
		p := sleeper(name, node.Name())
		p.Spec.NodeName = node.Name() // the scheduler would know better
		change(p)
		create(t, space, p)
		names = append(names, name)
	}
	return names
}

// offer has the Node offer a gadget and carry a label.
func offer(t *testing.T, node *bed.Box) {
	t.Helper()
	nodes := client().CoreV1().Nodes()
	patch := fmt.Sprintf(`{"status": {"capacity": {%q: "1"}, "allocatable": {%q: "1"}}}`, gadget, gadget)
	if _, err := nodes.Patch(t.Context(), node.Name(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	label(t, node, `"yes"`)
	awaitNode(t, node.Name(), usual, schedulable)
}

func label(t *testing.T, node *bed.Box, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, wantedLabel, value)
	if _, err := client().CoreV1().Nodes().Patch(t.Context(), node.Name(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// readmitted runs the pods that the next agent judges again. The one that it is to keep asks
// for more than half of the CPUs, as did one that has ended.
func readmitted(t *testing.T, node *bed.Box, space string) (running *corev1.Pod) {
	t.Helper()
	object := awaitNode(t, node.Name(), usual, schedulable)
	most := fmt.Sprintf("%dm", object.Status.Allocatable.Cpu().MilliValue()*6/10)
	done := sleeper("done", node.Name())
	done.Spec.RestartPolicy = corev1.RestartPolicyNever
	done.Spec.Containers[0].Command = []string{"true"}
	asksFor(done, "cpu", most)
	create(t, space, done)
	write(t, node.Path("/etc/kubernetes/manifests/pinned.yaml"), []byte(pinned))
	selected := sleeper("selected", node.Name())
	selected.Spec.NodeSelector[wantedLabel] = "yes"
	selected.Spec.Containers[0].Command = []string{"sh", "-c", untilFailed}
	create(t, space, selected)
	awaitPod(t, space, "done", usual, func(p *corev1.Pod) string {
		if p.Status.Phase != corev1.PodSucceeded {
			return "it is " + string(p.Status.Phase)
		}
		return ""
	})
	pod := sleeper("running", node.Name())
	asksFor(pod, "cpu", most)
	pod.Spec.Containers[0].Ports = hostPort
	create(t, space, pod)
	awaitPod(t, space, "selected", usual, ready)
	awaitPod(t, staticNamespace, "pinned-"+node.Name(), usual, ready)
	return awaitPod(t, space, "running", usual, ready)
}

// restartWithoutLabel has the next agent find a node that some of its pods do not select.
func restartWithoutLabel(t *testing.T, node *bed.Box) {
	t.Helper()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	label(t, node, "null")
	startKubelet(t, node, picky)
}

// testRejectedLater: a pod that runs when it is rejected is shown with the exit that followed.
func testRejectedLater(t *testing.T, space, name string) {
	p := awaitPod(t, space, name, usual, failed)
	if kubelet == bed.Reference && space != staticNamespace {
		return // whether it shows containers, and a reason, is a matter of chance
	}
	c := p.Status.ContainerStatuses
	if len(c) != 1 || c[0].State.Terminated == nil || c[0].State.Terminated.ExitCode != 3 || c[0].State.Terminated.Reason != "Error" {
		t.Errorf("containers: %+v", c)
	}
	if p.Status.Reason != "NodeAffinity" {
		t.Errorf("reason %q: %s", p.Status.Reason, p.Status.Message)
	}
}

// testRejectedStatic: a static pod that is rejected has no mirror, only an event.
func testRejectedStatic(t *testing.T, node *bed.Box) {
	const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: kube-system}
spec: {containers: [{name: c, image: none, resources: {requests: {cpu: 1000}}}]}
`
	write(t, node.Path("/etc/kubernetes/manifests/large.yaml"), []byte(manifest))
	name := "large-" + node.Name()
	eventually(t, usual, func() string {
		events, err := client().CoreV1().Events(staticNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UnexpectedAdmissionError,involvedObject.name=" + name})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprintf("no event says that the pod is rejected: %v", err)
		}
		return ""
	})
	if p, err := client().CoreV1().Pods(staticNamespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		t.Errorf("the rejected pod has a mirror: %+v", p.Status)
	}
}
