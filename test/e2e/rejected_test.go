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

// rejectingConfig is the configuration of a node that rejects pods for many reasons.
const rejectingConfig = `
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
	// gadget is an extended resource without a device plugin.
	gadget = "swiftlet.dev/gadget"
	// wantedLabel is a label of the node that pods select.
	wantedLabel = "swiftlet.dev/wanted"
)

// failOnTerm is a script that runs until SIGTERM and then fails: with exit code 0 the pod's phase would be
// Succeeded with the reference.
const failOnTerm = "trap 'exit 3' TERM; while :; do sleep 3600 & wait; done"

// pinned is a static pod with a node selector for wantedLabel.
const pinned = `
apiVersion: v1
kind: Pod
metadata: {name: pinned, namespace: kube-system}
spec:
  nodeSelector: {` + wantedLabel + `: "yes"}
  containers:
  - {name: c, image: "` + images.Busybox + `", command: [sh, -c, "` + failOnTerm + `"]}
`

// rejectable are pods that the node rejects, each for another reason.
var rejectable = map[string]func(*corev1.Pod){
	"cpu":     func(p *corev1.Pod) { setRequests(p, "cpu", "1000") },
	"memory":  func(p *corev1.Pod) { setRequests(p, "memory", "1Pi") },
	"storage": func(p *corev1.Pod) { setRequests(p, "ephemeral-storage", "1Pi") },
	"gadgets": func(p *corev1.Pod) { setLimits(p, gadget, "2") },
	// The CPU manager rejects it before the resource check does.
	"topology": func(p *corev1.Pod) { setLimits(p, "cpu", "1000", "memory", "32Mi") },
	"init-containers": func(p *corev1.Pod) {
		setRequests(p, "cpu", "1000")
		sidecar := p.Spec.Containers[0]
		sidecar.Name, sidecar.RestartPolicy = "sidecar", ptr.To(corev1.ContainerRestartPolicyAlways)
		first := p.Spec.Containers[0]
		first.Name = "first"
		p.Spec.InitContainers = []corev1.Container{first, sidecar}
	},
	"host-network": func(p *corev1.Pod) { p.Spec.HostNetwork = true; setRequests(p, "cpu", "1000") },
	"selector":     func(p *corev1.Pod) { p.Spec.NodeSelector["swiftlet.dev/absent"] = "yes" },
	"host-port":    func(p *corev1.Pod) { p.Spec.Containers[0].Ports = hostPort },
	"os-label":     func(p *corev1.Pod) { p.Labels = map[string]string{corev1.LabelOSStable: "windows"} },
	"os":           func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
	"sysctl":       forbidSysctl,
	// The scheduler does not check sysctls, so the pod has its condition PodScheduled.
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

func setRequests(p *corev1.Pod, pairs ...string) {
	p.Spec.Containers[0].Resources.Requests = quantities(pairs...)
}

func setLimits(p *corev1.Pod, pairs ...string) {
	p.Spec.Containers[0].Resources.Limits = quantities(pairs...)
}

func forbidSysctl(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}}
}

// TestRejected: a rejected pod has the status and events of the recording. It has no statuses of containers
// that were never created, also after a restart of the agent.
func TestRejected(t *testing.T) {
	t.Parallel()
	node := configuredNode(t, "picky", rejectingConfig)
	space := clearedNamespace(t)
	prepareNode(t, node)
	now := finalStateView(t, node, space)
	running := startReadmittedPods(t, node, space)

	names := createRejectable(t, node, space)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compareFinalState(t, now, space, name, name) })
	}
	t.Run("static", func(t *testing.T) { testRejectedStatic(t, node) })
	t.Run("agent restarted", func(t *testing.T) {
		restartWithoutLabel(t, node)
		t.Run("selected", func(t *testing.T) { testRejectedLater(t, space, "selected") })
		t.Run("pinned", func(t *testing.T) { testRejectedLater(t, staticNamespace, "pinned-"+node.Name()) })
		t.Run("running", func(t *testing.T) { checkSameContainers(t, running, awaitPod(t, space, "running", timeout, ready)) })
		if kubelet == bed.Reference {
			return // after a restart the reference adds container statuses to the others
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) { compareFinalState(t, now, space, name, name) })
		}
	})
}

// createRejectable creates the pods that are rejected on this host.
func createRejectable(t *testing.T, node *bed.Box, space string) (names []string) {
	t.Helper()
	appArmor, _ := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	for name, change := range rejectable {
		if name == "apparmor" && strings.HasPrefix(string(appArmor), "Y") {
			continue
		}
		p := sleeper(name, node.Name())
		p.Spec.NodeName = node.Name() // bypasses the scheduler
		change(p)
		create(t, space, p)
		names = append(names, name)
	}
	return names
}

// prepareNode adds a gadget and the label to the Node.
func prepareNode(t *testing.T, node *bed.Box) {
	t.Helper()
	nodes := client().CoreV1().Nodes()
	patch := fmt.Sprintf(`{"status": {"capacity": {%q: "1"}, "allocatable": {%q: "1"}}}`, gadget, gadget)
	if _, err := nodes.Patch(t.Context(), node.Name(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	label(t, node, `"yes"`)
	awaitNode(t, node.Name(), timeout, schedulable)
}

func label(t *testing.T, node *bed.Box, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, wantedLabel, value)
	if _, err := client().CoreV1().Nodes().Patch(t.Context(), node.Name(), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// startReadmittedPods starts the pods that the next agent admits again. The pod "running", which must be admitted,
// requests more than half of the CPUs, as did the completed pod "done".
func startReadmittedPods(t *testing.T, node *bed.Box, space string) (running *corev1.Pod) {
	t.Helper()
	object := awaitNode(t, node.Name(), timeout, schedulable)
	maxCPU := fmt.Sprintf("%dm", object.Status.Allocatable.Cpu().MilliValue()*6/10)
	done := sleeper("done", node.Name())
	done.Spec.RestartPolicy = corev1.RestartPolicyNever
	done.Spec.Containers[0].Command = []string{"true"}
	setRequests(done, "cpu", maxCPU)
	create(t, space, done)
	write(t, node.Path("/etc/kubernetes/manifests/pinned.yaml"), []byte(pinned))
	selected := sleeper("selected", node.Name())
	selected.Spec.NodeSelector[wantedLabel] = "yes"
	selected.Spec.Containers[0].Command = []string{"sh", "-c", failOnTerm}
	create(t, space, selected)
	awaitPod(t, space, "done", timeout, func(p *corev1.Pod) string {
		if p.Status.Phase != corev1.PodSucceeded {
			return "it is " + string(p.Status.Phase)
		}
		return ""
	})
	pod := sleeper("running", node.Name())
	setRequests(pod, "cpu", maxCPU)
	pod.Spec.Containers[0].Ports = hostPort
	create(t, space, pod)
	awaitPod(t, space, "selected", timeout, ready)
	awaitPod(t, staticNamespace, "pinned-"+node.Name(), timeout, ready)
	return awaitPod(t, space, "running", timeout, ready)
}

// restartWithoutLabel removes the label while the agent is down, so that some pods no longer match the node.
func restartWithoutLabel(t *testing.T, node *bed.Box) {
	t.Helper()
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	label(t, node, "null")
	startKubelet(t, node, rejectingConfig)
}

// testRejectedLater: a pod that is rejected while it runs has the exits of its containers in its status.
func testRejectedLater(t *testing.T, space, name string) {
	p := awaitPod(t, space, name, timeout, failed)
	if kubelet == bed.Reference && space != staticNamespace {
		return // its container statuses and reason vary with the reference
	}
	c := p.Status.ContainerStatuses
	if len(c) != 1 || c[0].State.Terminated == nil || c[0].State.Terminated.ExitCode != 3 || c[0].State.Terminated.Reason != "Error" {
		t.Errorf("containers: %+v", c)
	}
	if p.Status.Reason != "NodeAffinity" {
		t.Errorf("reason %q: %s", p.Status.Reason, p.Status.Message)
	}
}

// testRejectedStatic: a rejected static pod has an event and no mirror pod.
func testRejectedStatic(t *testing.T, node *bed.Box) {
	const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: kube-system}
spec: {containers: [{name: c, image: none, resources: {requests: {cpu: 1000}}}]}
`
	write(t, node.Path("/etc/kubernetes/manifests/large.yaml"), []byte(manifest))
	name := "large-" + node.Name()
	eventually(t, timeout, func() string {
		events, err := client().CoreV1().Events(staticNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=UnexpectedAdmissionError,involvedObject.name=" + name})
		if err != nil || len(events.Items) == 0 {
			return fmt.Sprintf("there is no event about the rejected pod: %v", err)
		}
		return ""
	})
	if p, err := client().CoreV1().Pods(staticNamespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		t.Errorf("the rejected pod has a mirror pod: %+v", p.Status)
	}
}
