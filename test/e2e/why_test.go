package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// whyFault is a fault of a pod, and what the sentence about the pod matches.
type whyFault struct {
	change func(p *corev1.Pod)
	// deleted: the sentence is about the pod's end.
	deleted bool
	want    string
}

// container is the container of a pod.
func container(p *corev1.Pod) *corev1.Container { return &p.Spec.Containers[0] }

func runs(script string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { container(p).Command = []string{"sh", "-c", script} }
}

// mounts gives the pod a volume.
func mounts(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
		container(p).VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// closedPort is a probe of a port on which nothing listens.
func closedPort() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(81)}}, PeriodSeconds: 1, FailureThreshold: 2}
}

// whyFaults are faults on a real runtime. Images are in registry, which demands a password.
func whyFaults(registry registryImage) map[string]whyFault {
	return map[string]whyFault{
		"no-pull-right": {change: func(p *corev1.Pod) { container(p).Image = registry.name },
			want: `^container c: image .+/team/app:1 cannot be pulled \(.*authorization failed.*\), since .+; fix spec.containers\[0\].image, spec.imagePullSecrets, or the registry$`},
		"registry-down": {change: func(p *corev1.Pod) { container(p).Image = "127.0.0.1:9/x:1" },
			want: `^container c: image 127.0.0.1:9/x:1 cannot be pulled \(.*connection refused\), since .+ or the registry$`},
		"never-pulled": {change: func(p *corev1.Pod) {
			container(p).Image, container(p).ImagePullPolicy = "docker.io/none:1", corev1.PullNever
		}, want: `^container c: image docker.io/none:1 is not on the node, and imagePullPolicy is Never, since .+; fix spec.containers\[0\].imagePullPolicy$`},
		"no-secret": {change: mounts(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}}),
			want: `^volume data: Secret [^ /]+/none does not exist, since .+ try at .+; fix Secret [^ /]+/none, or spec.volumes\[0\]$`},
		"no-config-map": {change: func(p *corev1.Pod) {
			container(p).EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}}
		}, want: `^container c: ConfigMap [^ /]+/none does not exist, since .+; fix ConfigMap [^ /]+/none$`},
		"no-claim": {change: mounts(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "none"}}),
			want: `^volume data: PersistentVolumeClaim [^ /]+/none does not exist, since .+; fix PersistentVolumeClaim [^ /]+/none, or spec.volumes\[0\]$`},
		"host-path": {change: mounts(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none", Type: ptr.To(corev1.HostPathDirectory)}}),
			want: `^volume data: hostPath /none is not of the type that the pod demands, or does not exist \(.+\), since .+; fix spec.volumes\[0\].hostPath, or /none on the node$`},
		"root": {change: func(p *corev1.Pod) {
			container(p).SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
		},
			want: `^container c: it would run as root.+; fix spec.containers\[0\].securityContext.runAsUser, or the USER of the image$`},
		"bad-command": {change: func(p *corev1.Pod) { container(p).Command = []string{"/none"} },
			want: `^container c: its command cannot be started \(.+no such file or directory.*\), since .+; fix spec.containers\[0\].command, args or workingDir$`},
		"crash-loop": {change: runs("exit 3"), want: `^container c: exits with code 3, since .+; fix its program \(kubectl logs .+ --previous\)$`},
		"oom": {change: func(p *corev1.Pod) {
			runs("exec tail /dev/zero")(p)
			container(p).Resources.Limits = quantities("memory", "16Mi")
		}, want: `^container c: was killed because it used more memory than its limit \(OOMKilled\), since .+; fix spec.containers\[0\].resources.limits.memory$`},
		"post-start": {change: func(p *corev1.Pod) {
			container(p).Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "exit 1"}}}}
		}, want: `^container c: its postStart hook failed, so it was stopped \(.+\), since .+; fix spec.containers\[0\].lifecycle.postStart$`},
		"not-ready": {change: func(p *corev1.Pod) { container(p).ReadinessProbe = closedPort() },
			want: `^container c: its readiness probe was refused: nothing listens on the port \(.+connection refused\), since .+; fix spec.containers\[0\].readinessProbe`},
		"not-alive": {change: func(p *corev1.Pod) { container(p).LivenessProbe = closedPort() },
			want: `^container c: was stopped: its liveness probe was refused: nothing listens on the port \(.+\), since .+; fix spec.containers\[0\].livenessProbe`},
		"too-big": {change: func(p *corev1.Pod) { container(p).Resources.Requests = quantities("memory", "1000Ti") },
			want: `^pod: was rejected: the node has too little memory \(.+\), since .+; fix spec.containers\[\*\].resources.requests.memory, or the pods on the node$`},
		"pre-stop": {deleted: true, change: func(p *corev1.Pod) {
			container(p).Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "3600"}}}}
		}, want: `^container c: its preStop hook has not come back, since .+; fix spec.containers\[0\].lifecycle.preStop, or spec.terminationGracePeriodSeconds$`},
		"finalizer": {deleted: true, change: func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} },
			want: `^pod: has ended, and is deleted when its finalizers are removed: example.com/wait, since .+; fix metadata.finalizers, or the controllers that remove them$`},
	}
}

// TestWhyOnRealRuntime: for each fault, the kubelet says which step blocks and what to change.
func TestWhyOnRealRuntime(t *testing.T) {
	t.Parallel()
	if kubelet == bed.Reference {
		t.Skip("the reference kubelet has no /why")
	}
	in, node := clearedNamespace(t), steadyNode(t)
	faults := whyFaults(privateImage(t))
	var all sync.WaitGroup
	for name, fault := range faults {
		p := sleeper(name, node.Name())
		p.Spec.NodeSelector, p.Spec.NodeName = nil, node.Name() // the scheduler would keep some of them
		fault.change(p)
		create(t, in, p)
		all.Go(func() {
			if fault.deleted {
				awaitSentence(t, node, in, name, `^pod: is ready`)
				if err := client().CoreV1().Pods(in).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
			awaitSentence(t, node, in, name, fault.want)
		})
	}
	all.Wait()
	checkWhyCommand(t, node, in)
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client().CoreV1().Pods(in).Patch(t.Context(), "finalizer", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// awaitSentence waits until the sentence about a pod, as the API server's proxy of the node has it, matches.
func awaitSentence(t *testing.T, node *bed.Box, in, name, want string) {
	t.Helper()
	pattern := regexp.MustCompile(want)
	last := waitFor(2*timeout, func() string {
		text, err := client().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/"+node.Name()+"/proxy/why", in, name).DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		if first, _, _ := strings.Cut(string(text), "\n"); !pattern.MatchString(first) {
			return first
		}
		return ""
	})
	if last != "" {
		t.Errorf("%s:\n%s\ndoes not match\n%s", name, last, want)
	}
}

// checkWhyCommand runs kubectl why, and asks the node itself.
func checkWhyCommand(t *testing.T, node *bed.Box, in string) {
	t.Helper()
	out, err := cluster.KubectlWhy(t.Context(), "-n", in, "no-secret")
	if err != nil || !strings.HasPrefix(out, "volume data: Secret "+in+"/none does not exist") || !strings.Contains(out, "─ volume data") {
		t.Errorf("kubectl why: %v\n%s", err, out)
	}
	out, err = cluster.KubectlWhy(t.Context(), "node", node.Name())
	if err != nil || !strings.HasPrefix(out, "node "+node.Name()+": is ready, but ") || !strings.Contains(out, in+"/no-secret: volume data: Secret") {
		t.Errorf("kubectl why node: %v\n%s", err, out)
	}
	if code, body := requestNode(t, node, http.MethodGet, "/why/"+in+"/no-secret?output=json"); code != http.StatusOK || !strings.Contains(body, `"class":"ObjectNotFound"`) {
		t.Errorf("%d: %s", code, body)
	}
	if _, err := cluster.KubectlWhy(t.Context(), "-n", in, "absent"); err == nil || !strings.Contains(err.Error(), "pod "+in+"/absent not found") {
		t.Errorf("kubectl why of a pod that does not exist: %v", err)
	}
}
