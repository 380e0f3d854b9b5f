package e2e

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

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

func execHook(command ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}

const (
	imageObjects = "spec.containers[0].image, spec.imagePullSecrets, or the registry"
	noExit       = "its program (kubectl logs -n NAMESPACE POD -c c --previous)"
)

// whyFaults are the faults that are always injected. Images are in registry, which demands a password.
func whyFaults(registry registryImage) []whyFault {
	return []whyFault{
		{name: "no-pull-right", change: func(p *corev1.Pod) { container(p).Image = registry.name },
			step: `container c: image .+/team/app:1 cannot be pulled \(.*authorization failed.*\), since .+`, object: imageObjects},
		{name: "registry-down", change: func(p *corev1.Pod) { container(p).Image = "127.0.0.1:9/x:1" },
			step: `container c: image 127.0.0.1:9/x:1 cannot be pulled \(.*connection refused\), since .+`, object: imageObjects},
		{name: "never-pulled", change: func(p *corev1.Pod) {
			container(p).Image, container(p).ImagePullPolicy = "docker.io/none:1", corev1.PullNever
		}, step: `container c: image docker.io/none:1 is not on the node, and imagePullPolicy is Never, since .+`, object: "spec.containers[0].imagePullPolicy"},
		{name: "no-secret", change: mounts(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none"}}),
			step: `volume data: Secret [^ /]+/none does not exist, since .+ try at .+`, object: "Secret NAMESPACE/none, or spec.volumes[0]"},
		{name: "no-config-map", change: func(p *corev1.Pod) {
			container(p).EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}}}}
		}, step: `container c: ConfigMap [^ /]+/none does not exist, since .+`, object: "ConfigMap NAMESPACE/none"},
		{name: "no-claim", change: mounts(fromClaim("none")),
			step: `volume data: PersistentVolumeClaim [^ /]+/none does not exist, since .+`, object: "PersistentVolumeClaim NAMESPACE/none, or spec.volumes[0]"},
		{name: "host-path", change: mounts(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none", Type: ptr.To(corev1.HostPathDirectory)}}),
			step: `volume data: hostPath /none is not of the type that the pod demands, or does not exist \(.+\), since .+`, object: "spec.volumes[0].hostPath, or /none on the node"},
		{name: "root", change: func(p *corev1.Pod) {
			container(p).SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
		}, step: `container c: it would run as root.+`, object: "spec.containers[0].securityContext.runAsUser, or the USER of the image"},
		{name: "bad-command", change: func(p *corev1.Pod) { container(p).Command = []string{"/none"} },
			step: `container c: its command cannot be started \(.+no such file or directory.*\), since .+`, object: "spec.containers[0].command, args or workingDir"},
		{name: "crash-loop", change: runs("exit 3"), step: `container c: exits with code 3, since .+`, object: noExit},
		{name: "oom", change: func(p *corev1.Pod) {
			runs("exec tail /dev/zero")(p)
			container(p).Resources.Limits = quantities("memory", "16Mi")
		}, step: `container c: was killed because it used more memory than its limit \(OOMKilled\), since .+`, object: "spec.containers[0].resources.limits.memory"},
		{name: "post-start", change: func(p *corev1.Pod) {
			container(p).Lifecycle = &corev1.Lifecycle{PostStart: execHook("sh", "-c", "exit 1")}
		}, step: `container c: its postStart hook failed, so it was stopped \(.+\), since .+`, object: "spec.containers[0].lifecycle.postStart"},
		{name: "not-ready", change: func(p *corev1.Pod) { container(p).ReadinessProbe = closedPort() },
			step: `container c: its readiness probe was refused: nothing listens on the port \(.+connection refused\), since .+`, object: "spec.containers[0].readinessProbe, or what it asks"},
		{name: "not-alive", change: func(p *corev1.Pod) { container(p).LivenessProbe = closedPort() },
			step: `container c: was stopped: its liveness probe was refused: nothing listens on the port \(.+\), since .+`, object: "spec.containers[0].livenessProbe, or what it asks"},
		{name: "too-big", change: func(p *corev1.Pod) { container(p).Resources.Requests = quantities("memory", "1000Ti") },
			step: `pod: was rejected: the node has too little memory \(.+\), since .+`, object: "spec.containers[*].resources.requests.memory, or the pods on the node"},
		{name: "pre-stop", deleted: true, change: func(p *corev1.Pod) {
			container(p).Lifecycle = &corev1.Lifecycle{PreStop: execHook("sleep", "3600")}
		}, step: `container c: its preStop hook has not come back, since .+`, object: "spec.containers[0].lifecycle.preStop, or spec.terminationGracePeriodSeconds"},
		{name: "finalizer", deleted: true, change: func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} },
			step: `pod: has ended, and is deleted when its finalizers are removed: example.com/wait, since .+`, object: "metadata.finalizers, or the controllers that remove them"},
	}
}
