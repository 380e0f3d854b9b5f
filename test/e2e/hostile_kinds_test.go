package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// hostilePod is a pod that tries to harm the node.
type hostilePod struct {
	name   string
	short  bool // runs also without SWIFTLET_HOSTILE_PODS
	static bool // is a file on the node that the agent must reject
	make   func(node string) *corev1.Pod
	expect func(*corev1.Pod) string // of the pod; nil: it becomes ready
	// then does more once that is so.
	then func(ctx context.Context, in string, node *bed.Box, pod *corev1.Pod) error
}

// hostilePods returns the pods, at full size or smaller.
func hostilePods(full bool) []hostilePod {
	size := func(large, small int) int {
		if full {
			return large
		}
		return small
	}
	list := []hostilePod{
		{name: "many environment variables", short: true, make: func(node string) *corev1.Pod { return manyVariables(node, size(10000, 2000)) }},
		{name: "variables that double", short: true, make: doublingVariables, expect: refusedConfig},
		{name: "annotations of the largest size", make: largeAnnotations},
		{name: "annotations of 1 MB in a file", static: true, make: func(node string) *corev1.Pod {
			pod := sleeper("large-file", node)
			pod.Annotations = map[string]string{"large": strings.Repeat("a", 1<<20)}
			return pod
		}},
		{name: "longest names", short: true, make: longestNames},
		{name: "name too long for its log directory", make: func(node string) *corev1.Pod { return sleeper(strings.Repeat("n", 253), node) },
			expect: func(pod *corev1.Pod) string {
				if pod == nil || pod.Status.HostIP == "" {
					return "the node has not reported the pod"
				}
				return ""
			}},
		{name: "many containers", make: func(node string) *corev1.Pod { return manyContainers(node, size(50, 10)) }},
		{name: "fork bomb in a probe", short: true, make: forkBomb, expect: scheduledAndStarted},
		{name: "endless log without lines", make: func(node string) *corev1.Pod {
			return limited(scripted("endless-log", node, "while :; do head -c 65536 /dev/zero | tr '\\0' x; done"))
		}, then: readEndlessLog},
		{name: "endless output of a hook", make: noisyHook, expect: scheduledAndStarted},
		{name: "endless output of a probe", make: noisyProbe, expect: scheduledAndStarted},
		{name: "large termination message", make: func(node string) *corev1.Pod {
			return scripted("large-message", node, "head -c 50000000 /dev/zero | tr '\\0' m > /dev/termination-log; exit 1")
		}, expect: boundedMessage},
		{name: "deep tree", short: true, make: func(node string) *corev1.Pod {
			// Paths are at most 4096 bytes long, so the tree is assembled from parts.
			script := fmt.Sprintf("cd /scratch; p=$(printf 'd/%%.0s' $(seq 1000)); mkdir -p t0/$p; i=0; while [ $i -lt %d ]; do i=$((i+1)); "+
				"mkdir -p t$i/$p && mv t$((i-1)) t$i/$p || exit 1; done; touch /scratch/ready; "+exitOnTerm, size(10, 1))
			return touched(addVolume(scripted("deep-tree", node, script), "scratch", emptyDir, ""))
		}},
		{name: "many files", make: func(node string) *corev1.Pod {
			script := fmt.Sprintf("cd /scratch; seq %d | xargs touch; touch /scratch/ready; "+exitOnTerm, size(100000, 1000))
			return touched(addVolume(scripted("many-files", node, script), "scratch", emptyDir, ""))
		}},
		{name: "links out of volumes", short: true, make: linksOut, expect: neverStarts},
	}
	return append(list, replacedFiles()...)
}

var emptyDir = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}

func manyVariables(node string, number int) *corev1.Pod {
	pod := sleeper("many-variables", node)
	for n := range number {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", n), Value: fmt.Sprintf("$(VARIABLE_%d)x", n/2+1)})
	}
	return pod
}

// doublingVariables refer twice to the one before: the last would have 1 TiB.
func doublingVariables(node string) *corev1.Pod {
	pod := sleeper("doubling-variables", node)
	env := []corev1.EnvVar{{Name: "V0", Value: strings.Repeat("x", 1000)}}
	for n := range 30 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("V%d", n+1), Value: fmt.Sprintf("$(V%d)$(V%d)", n, n)})
	}
	pod.Spec.Containers[0].Env = env
	return pod
}

// refusedConfig expects that the container is not created.
func refusedConfig(pod *corev1.Pod) string {
	if pod != nil {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == "CreateContainerConfigError" {
				return ""
			}
		}
	}
	return "the container was not refused"
}

func largeAnnotations(node string) *corev1.Pod {
	pod := sleeper("large-annotations", node)
	pod.Annotations = map[string]string{"large": strings.Repeat("a", 256<<10-len("large"))}
	return pod
}

// longestNames has a name that is as long as the name of a log directory, NAMESPACE_NAME_UID, allows.
func longestNames(node string) *corev1.Pod {
	pod := sleeper(strings.Repeat("n", 255-len("testhostilepods-12345__")-36), node)
	pod.Labels = map[string]string{strings.Repeat("d", 253) + "/" + strings.Repeat("k", 63): strings.Repeat("v", 63)}
	pod.Spec.Containers[0].Name = strings.Repeat("c", 63)
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: strings.Repeat("E", 4096), Value: strings.Repeat("v", 65536)}}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: strings.Repeat("p", 15), ContainerPort: 65535}}
	pod.Spec.Hostname, pod.Spec.Subdomain = strings.Repeat("h", 63), strings.Repeat("s", 63)
	addVolume(pod, strings.Repeat("v", 63), emptyDir, strings.Repeat("p", 255)+"/"+strings.Repeat("q", 255))
	return pod
}

func manyContainers(node string, number int) *corev1.Pod {
	pod := sleeper("many-containers", node)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	for n := range number - 1 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", n), Image: images.Busybox, Command: []string{"sleep", "3600"}})
	}
	return pod
}

func forkBomb(node string) *corev1.Pod {
	pod := limited(sleeper("fork-bomb", node))
	pod.Spec.Containers[0].ReadinessProbe = execProbe("f() { f | f & }; f; sleep 60")
	pod.Spec.Containers[0].LivenessProbe = execProbe("while :; do sleep 60 & done")
	return pod
}

func noisyProbe(node string) *corev1.Pod {
	pod := limited(sleeper("noisy-probe", node))
	pod.Spec.Containers[0].ReadinessProbe = execProbe("yes 1>&2; false")
	return pod
}

func noisyHook(node string) *corev1.Pod {
	pod := limited(sleeper("noisy-hook", node))
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{
		Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "head -c 15000000 /dev/zero | tr '\\0' e >&2; exit 1"}}}}
	return pod
}

func execProbe(script string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 2,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}}
}

// touched makes the pod ready once its script has created /scratch/ready.
func touched(pod *corev1.Pod) *corev1.Pod {
	probe := execProbe("test -e /scratch/ready")
	probe.FailureThreshold, probe.TimeoutSeconds = 100, 5
	pod.Spec.Containers[0].ReadinessProbe = probe
	return pod
}

// linksOut makes links in a volume that lead out of it, one of them as the subPath of a second container.
func linksOut(node string) *corev1.Pod {
	pod := addVolume(sleeper("links-out", node), "scratch", emptyDir, "")
	pod.Spec.InitContainers = []corev1.Container{{Name: "links", Image: images.Busybox,
		Command:      []string{"sh", "-c", "cd /scratch; ln -s / root; ln -s /etc etc; ln -s ../../../../.. up; ln -s " + hostDir + " host"},
		VolumeMounts: []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}}}
	pod.Spec.Containers[0].VolumeMounts = nil
	for n, sub := range []string{"root", "etc", "up", "host", "host/mounted", "root/var"} {
		c := corev1.Container{Name: fmt.Sprintf("c%d", n), Image: images.Busybox, Command: []string{"sleep", "3600"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/out", SubPath: sub}}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// neverStarts expects that the containers with a subPath that leads out are not created, and the other is.
func neverStarts(pod *corev1.Pod) string {
	if pod == nil {
		return "the pod does not exist"
	}
	refused := 0
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.Name != "c" && (c.State.Running != nil || c.State.Terminated != nil):
			return "container " + c.Name + " started in a directory outside of its volume"
		case c.State.Waiting != nil && c.State.Waiting.Reason == "CreateContainerConfigError":
			refused++
		}
	}
	if refused != len(pod.Spec.Containers)-1 {
		return fmt.Sprintf("%d containers were refused: %+v", refused, pod.Status.ContainerStatuses)
	}
	return ""
}

// limited gives the pod a tenth of a CPU: the tests share the machine.
func limited(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	return pod
}

// scheduledAndStarted expects that the container has started at least once.
func scheduledAndStarted(pod *corev1.Pod) string {
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return "the pod has no container statuses"
	}
	c := pod.Status.ContainerStatuses[0]
	if c.State.Running == nil && c.State.Terminated == nil && c.LastTerminationState.Terminated == nil {
		return fmt.Sprintf("the container did not start: %+v", c)
	}
	if size := statusSize(pod); size > 64<<10 {
		return fmt.Sprintf("the pod's status has %d bytes", size)
	}
	return ""
}

func statusSize(pod *corev1.Pod) int {
	data, err := json.Marshal(pod.Status)
	if err != nil {
		return 0
	}
	return len(data)
}

// boundedMessage expects a termination message of 4096 bytes, as upstream's.
func boundedMessage(pod *corev1.Pod) string {
	if pod == nil || len(pod.Status.ContainerStatuses) == 0 {
		return "the pod has no container statuses"
	}
	c := pod.Status.ContainerStatuses[0]
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	if ended == nil {
		return "the container has not ended"
	}
	if size := len(ended.Message); size == 0 || size > 4096 {
		return fmt.Sprintf("the termination message has %d bytes", size)
	}
	return ""
}

// readEndlessLog reads the end of an endless log through the API server.
func readEndlessLog(ctx context.Context, in string, _ *bed.Box, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	options := &corev1.PodLogOptions{TailLines: ptr.To[int64](1), LimitBytes: ptr.To[int64](1 << 20)}
	_, err := client().CoreV1().Pods(in).GetLogs(pod.Name, options).DoRaw(ctx)
	return err
}

// runHostileStatic writes a manifest that the agent must reject, and one beside it that must run.
func runHostileStatic(ctx context.Context, node *bed.Box, bad *corev1.Pod) error {
	const dir = "/etc/kubernetes/manifests/"
	bad.Namespace, bad.Spec.NodeSelector = metav1.NamespaceDefault, nil
	bad.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	data, err := json.Marshal(bad)
	if err != nil {
		return err
	}
	files := map[string][]byte{"bad.json": data, "good.yaml": outageManifest("good-file", "3600")}
	for name, content := range files {
		if err := os.WriteFile(node.Path(dir+name), content, 0o644); err != nil {
			return err
		}
	}
	if _, err := awaitErr(ctx, pods(metav1.NamespaceDefault), "good-file-"+node.Name(), 2*timeout, ready); err != nil {
		return err
	}
	for name := range files {
		if err := os.Remove(node.Path(dir + name)); err != nil {
			return err
		}
	}
	_, err = awaitErr(ctx, pods(metav1.NamespaceDefault), "good-file-"+node.Name(), time.Minute, gone)
	return err
}
