package e2e

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"swiftlet/test/images"
)

// containerFaults are faults of what runs in containers.
func (w *whyPlace) containerFaults() []whyFault {
	initRuns := func(script string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: images.Busybox, Command: []string{"sh", "-c", script}}}
		}
	}
	return []whyFault{
		{name: "completes", change: runs("exit 0"), step: `container c: has completed, and is started again because of restartPolicy Always, since`, object: "its program, or spec.restartPolicy"},
		{name: "signal", change: func(p *corev1.Pod) {
			runs("kill -SEGV $$$$")(p)                  // $$ for the shell
			p.Spec.ShareProcessNamespace = ptr.To(true) // the first process of a namespace ignores the signal
		}, step: `container c: was ended by signal 11`, object: noExit},
		{name: "fails-for-good", change: func(p *corev1.Pod) {
			runs("exit 3")(p)
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
		}, step: `container c: the pod has failed: it exits with code 3, and restartPolicy is Never, since`, object: noExit},
		{name: "working-directory", change: func(p *corev1.Pod) { container(p).WorkingDir = "/bin/sh/none" },
			step: `container c: its command cannot be started \(.+\), since`, object: "spec.containers[0].command, args or workingDir"},
		{name: "init-fails", change: initRuns("exit 4"), step: `init container init: exits with code 4, since`,
			object: "its program (kubectl logs -n NAMESPACE POD -c init --previous)"},
		{name: "init-runs", change: initRuns("exec sleep 3600"), step: `init container init: runs, and the containers after it wait until it has completed, since`,
			object: "its program (kubectl logs -n NAMESPACE POD -c init), if it takes too long"},
		{name: "hook-hangs", change: func(p *corev1.Pod) {
			container(p).Lifecycle = &corev1.Lifecycle{PostStart: execHook("sleep", "3600")}
		}, step: `container c: its postStart hook has not come back, since`, object: "spec.containers[0].lifecycle.postStart, if it takes too long"},
		{name: "deadline", change: func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](3) },
			step: `pod: was stopped: it ran longer than its deadline \(.+\), since`, object: "spec.activeDeadlineSeconds"},
		{name: "volume-over-limit", change: func(p *corev1.Pod) {
			limit := resource.MustParse("4Mi")
			mounts(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}})(p)
			runs("dd if=/dev/zero of=/data/file bs=1M count=8; exec sleep 3600")(p)
		}, step: `pod: was evicted: an emptyDir volume has more than its limit \(.+\), since`, object: "spec.volumes[*].emptyDir.sizeLimit, or what the pod writes"},
		{name: "layer-over-limit", change: func(p *corev1.Pod) {
			container(p).Resources.Limits = quantities("ephemeral-storage", "4Mi")
			runs("dd if=/dev/zero of=/file bs=1M count=8; exec sleep 3600")(p)
		}, step: `pod: was evicted: its volumes, logs and layers have more than its limit \(.+\), since`,
			object: "spec.containers[*].resources.limits.ephemeral-storage, or what the pod writes"},
	}
}

// probeFaults are faults of probes, of each kind and with each kind of handler.
func (w *whyPlace) probeFaults() []whyFault {
	every := func(handler corev1.ProbeHandler) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: handler, PeriodSeconds: 1, FailureThreshold: 2}
	}
	command := func(argv ...string) *corev1.Probe {
		return every(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: argv}})
	}
	readiness := func(probe *corev1.Probe) func(*corev1.Pod) {
		return func(p *corev1.Pod) { container(p).ReadinessProbe = probe }
	}
	const object = "spec.containers[0].readinessProbe, or what it asks"
	return []whyFault{
		{name: "readiness-exec", change: readiness(command("sh", "-c", "echo sick; exit 1")), step: `container c: its readiness probe failed \(sick\), since`, object: object},
		{name: "readiness-exec-slow", change: readiness(command("sleep", "60")), step: `container c: its readiness probe got no answer in time \(.+\), since`, object: object},
		{name: "readiness-exec-absent", change: readiness(command("/none")), step: `container c: its readiness probe (could not be run|failed) \(.+\), since`, object: object},
		{name: "readiness-http", change: func(p *corev1.Pod) {
			runs("mkdir -p /www && exec httpd -f -p 8080 -h /www")(p)
			container(p).ReadinessProbe = every(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/none", Port: intstr.FromInt32(8080)}})
		}, step: `container c: its readiness probe failed \(.*404.*\), since`, object: object},
		{name: "readiness-http-closed", change: readiness(every(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(81)}})),
			step: `container c: its readiness probe was refused: nothing listens on the port \(.+\), since`, object: object},
		{name: "readiness-grpc-closed", change: readiness(every(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 81}})),
			step: `container c: its readiness probe got no answer in time \(.+\), since`, object: object},
		{name: "readiness-late", change: func(p *corev1.Pod) {
			container(p).ReadinessProbe = command("true")
			container(p).ReadinessProbe.InitialDelaySeconds = 3600
		}, step: `container c: its readiness probe has not passed yet, since`, object: "spec.containers[0].readinessProbe"},
		{name: "readiness-gate", change: func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
		}, step: `pod: its readiness gate example.com/lb is not True`, object: "condition example.com/lb"},
		{name: "startup-never-done", change: func(p *corev1.Pod) {
			container(p).StartupProbe = command("false")
			container(p).StartupProbe.FailureThreshold = 10000
		}, step: `container c: its startup probe failed`, object: "spec.containers[0].startupProbe, or what it asks"},
		{name: "startup-kills", change: func(p *corev1.Pod) { container(p).StartupProbe = closedPort() },
			step: `container c: was stopped: its startup probe was refused: nothing listens on the port \(.+\), since`, object: "spec.containers[0].startupProbe, or what it asks"},
		{name: "liveness-exec", change: func(p *corev1.Pod) { container(p).LivenessProbe = command("false") },
			step: `container c: was stopped: its liveness probe failed`, object: "spec.containers[0].livenessProbe, or what it asks"},
	}
}

// admissionFaults are pods that the node rejects.
func (w *whyPlace) admissionFaults() []whyFault {
	startPod(w.T, w.in, podWithPort(w.node.Name()))
	return []whyFault{
		{name: "too-many-cpus", change: func(p *corev1.Pod) { setRequests(p, "cpu", "1000") },
			step: `pod: was rejected: the node has too little cpu \(.+\), since`, object: "spec.containers[*].resources.requests.cpu, or the pods on the node"},
		{name: "too-much-storage", change: func(p *corev1.Pod) { setRequests(p, "ephemeral-storage", "1Pi") },
			step: `pod: was rejected: the node has too little ephemeral-storage \(.+\), since`, object: "spec.containers[*].resources.requests.ephemeral-storage, or the pods on the node"},
		{name: "node-selector", change: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"swiftlet.dev/absent": "yes"} },
			step: `pod: was rejected: the node does not match its node selector or affinity \(.+\), since`, object: "spec.nodeSelector, spec.affinity.nodeAffinity, or the node's labels"},
		{name: "host-port", change: func(p *corev1.Pod) { container(p).Ports = hostPort },
			step: `pod: was rejected: another pod has its host port \(.+\), since`, object: "spec.containers[*].ports[*].hostPort"},
		{name: "sysctl", change: forbidSysctl, step: `pod: was rejected: the node does not allow a sysctl \(.+\), since`, object: "spec.securityContext.sysctls, or allowedUnsafeSysctls of the node"},
		{name: "other-os", change: func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
			step: `pod: was rejected: it is for another operating system \(.+\), since`, object: "spec.os"},
	}
}

// podWithPort is a pod that has the host port.
func podWithPort(node string) *corev1.Pod {
	p := sleeper("has-host-port", node)
	container(p).Ports = hostPort
	return p
}

// endFaults are pods that do not end.
func (w *whyPlace) endFaults() []whyFault {
	return []whyFault{
		{name: "ignores-sigterm", deleted: true, change: func(p *corev1.Pod) {
			runs("trap '' TERM; while :; do sleep 1; done")(p)
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300)
		}, step: `container c: has been sent its stop signal and has not ended, grace period 300s`, object: "its handling of the stop signal, or spec.terminationGracePeriodSeconds"},
	}
}
