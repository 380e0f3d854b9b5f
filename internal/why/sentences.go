package why

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// failed says what has failed in a step, and what to change.
func (in *input) failed(s *StepReport) (what, fix string) {
	switch s.Kind {
	case Image, ImageVolume:
		if what, fix, known := in.imageFailed(s); known {
			return what, fix
		}
	case Volume:
		if what, fix, known := in.volumeFailed(s); known {
			return what, fix
		}
	}
	if words, known := shared[s.Class]; known {
		return in.fill(words.what, s), in.fill(words.fix, s)
	}
	words := byKind[s.Kind]
	return in.fill(words.what, s), in.fill(words.fix, s)
}

// fill replaces the placeholders of a sentence.
func (in *input) fill(text string, s *StepReport) string {
	if !strings.Contains(text, "{") {
		return text
	}
	object := in.object(s)
	if object == "" {
		object = "an object"
	}
	node := "node " + in.pod.Spec.NodeName
	if in.pod.Spec.NodeName == "" {
		node = "the node"
	}
	return strings.NewReplacer("{object}", object, "{field}", in.field(s.Name), "{node}", node).Replace(text)
}

type words struct{ what, fix string }

// shared are the classes that mean the same in every step.
var shared = map[Class]words{
	ObjectNotFound:       {"{object} does not exist", "{object}"},
	ObjectForbidden:      {"the node may not read {object}", "{object}, or the node's permissions"},
	KeyNotFound:          {"there is no {object}", "{object}"},
	APIServerUnreachable: {"the API server does not answer", "the API server, or the node's connection to it"},
	ServicesNotRead:      {"the services of the API server have not been read yet", "the API server, or the node's connection to it"},
	RuntimeUnavailable:   {"the container runtime is not running", "the container runtime of {node}"},
	RuntimeClassNotFound: {"RuntimeClass {object} does not exist", "spec.runtimeClassName, or the RuntimeClass"},
	UserInvalid:          {"it would run as root, or its user cannot be checked, and runAsNonRoot forbids that", "{field}.securityContext.runAsUser, or the USER of the image"},
	EnvironmentInvalid:   {"an environment variable cannot be set", "{field}.env"},
	SubPathInvalid:       {"a subPath cannot be used: {object}", "{object}"},
	StillRunning:         {"it still runs after SIGKILL", "the process, which is stuck in the kernel, or the container runtime of {node}"},
	StillMounted:         {"something is mounted at {object}", "what uses {object} on {node}"},
	NoAnswer:             {"the file system of a volume does not answer", "what spec.volumes mounts"},
	NoSpace:              {"the disk is full", "the disk of {node}"},
	WaitsForDevice:       {"waits for a device", "the device plugin on {node}, or spec.containers[*].resources.limits"},
}

// byKind is what a step that failed means if its class says no more.
var byKind = [...]words{
	Admission:    {"was rejected", "spec"},
	Observe:      {"the container runtime cannot be asked for the pod", "the container runtime of {node}"},
	Network:      {"the pod network of the node is not ready", "the CNI configuration of {node}"},
	Resources:    {"its devices or claims cannot be prepared", "spec.resourceClaims, or the device and DRA plugins on {node}"},
	Cgroup:       {"its cgroup cannot be created", "the cgroups of {node}"},
	Sandbox:      {"the container runtime cannot create it, with the pod's network", "the CNI network or the container runtime of {node}"},
	Volume:       {"it cannot be mounted", "{field}"},
	ImageVolume:  {"its image cannot be pulled", "{field}"},
	Image:        {"its image cannot be pulled", "{field}.image"},
	Create:       {"it cannot be created", "{field}"},
	Start:        {"its command cannot be started", "{field}.command, args or workingDir"},
	PostStart:    {"its postStart hook failed, so it was stopped", "{field}.lifecycle.postStart"},
	Resize:       {"it cannot be resized", "spec.containers[*].resources"},
	PreStop:      {"its preStop hook failed", "{field}.lifecycle.preStop"},
	Kill:         {"it cannot be stopped", "the container runtime of {node}"},
	StopSandbox:  {"it cannot be stopped", "the CNI network or the container runtime of {node}"},
	Release:      {"its claims cannot be released", "the DRA plugins on {node}"},
	Unmount:      {"cannot be unmounted", "what uses it on {node}"},
	RemoveCgroup: {"its cgroup cannot be removed, as processes are left in it", "the processes in the pod's cgroup on {node}"},
	Remove:       {"what is left of it cannot be removed", "the container runtime and the pod's directory on {node}"},
}

// imageFailed says why an image cannot be had.
func (in *input) imageFailed(s *StepReport) (what, fix string, known bool) {
	image, field := in.imageOf(s.Step)
	w, known := map[Class]words{
		ImageNotFound:       {"image %s does not exist in the registry", field},
		ImageUnauthorized:   {"image %s may not be pulled without other credentials", "spec.imagePullSecrets, or " + field},
		ImageNameInvalid:    {"image name %q is invalid", field},
		ImageNotPresent:     {"image %s is not on the node, and imagePullPolicy is Never", strings.TrimSuffix(field, ".image") + ".imagePullPolicy"},
		ImageSignature:      {"the signature of image %s is not valid", field + ", or the signature policy of the container runtime"},
		ImagePullStalled:    {"the pull of image %s was canceled, as too many others take as long", "the registry"},
		PullRateExceeded:    {"image %s waits, as the node pulls no more images per second", "registryPullQPS and registryBurst of the node"},
		RegistryUnavailable: {"the registry of image %s does not answer", "the registry, or the node's connection to it"},
		CredentialsFailed:   {"no credentials for image %s, as they could not be read", "spec.imagePullSecrets, or the credential provider of the node"},
		Timeout:             {"the registry of image %s does not answer in time", "the registry, or the node's connection to it"},
		Unclassified:        {"image %s cannot be pulled", field + ", spec.imagePullSecrets, or the registry"},
	}[s.Class]
	if !known {
		return "", "", false
	}
	return fmt.Sprintf(w.what, image), w.fix, true
}

// volumeFailed says why a volume cannot be mounted.
func (in *input) volumeFailed(s *StepReport) (what, fix string, known bool) {
	field, object := in.volumeField(s.Name), in.object(s)
	w, known := map[Class]words{
		ObjectNotFound:      {object + " does not exist", object + ", or " + field},
		KeyNotFound:         {"there is no " + object, object + ", or " + field},
		ClaimNotBound:       {object + " is not bound to a volume", object + ", its storage class or its provisioner"},
		ClaimDeleted:        {object + " is being deleted", object + ", or " + field},
		ClaimNotOurs:        {object + " belongs to another claim", object},
		VolumeNotAttached:   {"it is not attached to the node yet", "the VolumeAttachment, or the attacher of the CSI driver"},
		VolumeModeMismatch:  {"its volumeMode does not fit the container's volumeMounts or volumeDevices", "spec.containers[*].volumeMounts, or volumeMode of the claim"},
		VolumeElsewhere:     {"it cannot be used on this node", "spec.nodeAffinity of the PersistentVolume, or the node's labels"},
		VolumeTooLarge:      {"its files are too large", field},
		DriverNotRegistered: {"CSI driver " + s.Object + " is not running on the node", "the CSI driver " + s.Object + " on the node"},
		ProgramMissing:      {"the node lacks the program " + s.Object + ", which mounts it", "the packages of the node"},
		NoVolumePlugin:      {"the node has no plugin for it", field},
		HostPathMismatch:    {"hostPath " + s.Object + " is not of the type that the pod demands, or does not exist", field + ".hostPath, or " + s.Object + " on the node"},
		Timeout:             {"its driver or server does not answer in time", "what " + field + " mounts"},
		NoAnswer:            {"its file system, server or driver does not answer", "what " + field + " mounts"},
		RuntimeUnavailable:  {"its driver does not answer", "the volume driver on the node"},
		DeviceBusy:          {"its device is in use", "what uses the device on the node"},
		NoSpace:             {"its file system is full", "what " + field + " mounts, or the disk of the node"},
		Unclassified:        {"it cannot be mounted", field},
	}[s.Class]
	return w.what, w.fix, known
}

// probeWords says how a probe has failed.
func probeWords(field string, s *StepReport) (what, fix string) {
	answer := map[Class]string{
		ProbeNoReply: "got no answer in time", ProbeRefused: "was refused: nothing listens on the port", ProbeError: "could not be run",
	}[s.Class]
	if answer == "" {
		answer = "failed"
	}
	return fmt.Sprintf("its %s %s", s.Kind, answer), fmt.Sprintf("%s%s, or what it asks", field, probeField(s.Kind))
}

func probeField(k Kind) string {
	return map[Kind]string{Startup: ".startupProbe", Liveness: ".livenessProbe", Readiness: ".readinessProbe"}[k]
}

// runs says what a step that has begun waits for.
func (in *input) runs(s *StepReport) (what, fix string) {
	switch s.Kind {
	case Image, ImageVolume:
		image, field := in.imageOf(s.Step)
		if s.State == queued {
			return "image " + image + " waits for other pulls", "serializeImagePulls or maxParallelImagePulls of the node, or the registry"
		}
		return "image " + image + " is being pulled", field + " or the registry, if it takes too long"
	case Volume:
		return "its mount has not come back", "what " + in.volumeField(s.Name) + " mounts, if it takes too long"
	case PostStart:
		return "its postStart hook has not come back", in.field(s.Name) + ".lifecycle.postStart, if it takes too long"
	case PreStop:
		return "its preStop hook has not come back", in.field(s.Name) + ".lifecycle.preStop, or spec.terminationGracePeriodSeconds"
	case Kill:
		return in.stops(s)
	case Unmount:
		return "is being unmounted", "its file system, server or driver, if it takes too long"
	}
	words := inProgress[s.Kind]
	return words.what, in.fill(words.fix, s)
}

// stops says what a container that is being stopped waits for.
func (in *input) stops(s *StepReport) (what, fix string) {
	if in.graceOver() {
		return "does not end although its grace period is over", "its processes, which may be stuck in the kernel, or the container runtime of the node"
	}
	return fmt.Sprintf("has been sent its stop signal and has not ended, grace period %ds", graceOf(in.pod)), "its handling of the stop signal, or spec.terminationGracePeriodSeconds"
}

func graceOf(p *v1.Pod) int64 {
	if seconds := pod.GracePeriod(p, p.DeletionGracePeriodSeconds); seconds != nil {
		return *seconds
	}
	return 0
}

// inProgress is what a step that has begun is, by kind.
var inProgress = [...]words{
	Admission:    {"waits until an older pod of its name, or the pods that it preempts, have stopped", "what keeps those from ending"},
	Observe:      {"the container runtime is asked for the pod", "the container runtime of {node}, if it takes too long"},
	Network:      {"waits for the pod network of the node", "the CNI configuration of {node}"},
	Resources:    {"its devices and claims are being prepared", "the device and DRA plugins on {node}, if it takes too long"},
	Cgroup:       {"its cgroup is being created", "the cgroups of {node}, if it takes too long"},
	Sandbox:      {"is being created with the pod's network", "the CNI network or the container runtime of {node}, if it takes too long"},
	Create:       {"is being created", "the container runtime of {node}, if it takes too long"},
	Start:        {"is being started", "the container runtime of {node}, if it takes too long"},
	Resize:       {"is being resized", "the container runtime of {node}, if it takes too long"},
	StopSandbox:  {"is being stopped", "the CNI network or the container runtime of {node}, if it takes too long"},
	Release:      {"its claims are being released", "the DRA plugins on {node}, if it takes too long"},
	RemoveCgroup: {"its cgroup is being removed", "the processes in the pod's cgroup on {node}, if it takes too long"},
	Remove:       {"what is left of it is being removed", "the container runtime of {node}, if it takes too long"},
}
