package podsync

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/image"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
	"swiftlet/internal/why"
)

// Deps are the dependencies of the steps. Mirrors may be nil without an API server, and Resources
// without device plugins and resource claims.
type Deps struct {
	Runtime   Runtime
	Logs      Logs
	Observer  Observer
	Images    Images
	Volumes   Volumes
	Cgroups   Cgroups
	Status    Status
	Mirrors   Mirrors
	Objects   Objects
	Sources   runtime.Sources
	Probes    Probes
	Resources Resources
	Resizing  Resizing
	Node      Node
	// Removed is called for each pod that has been removed completely; may be nil.
	Removed func(types.UID)
	// Why records what the steps of each pod do; may be nil.
	Why    *why.Tracker
	Meters Meters
	Events pod.Events
	Clock  clock.Clock
	Log    *slog.Logger
}

// Resizing has the resources that pods were allocated, have and use. All may be nil: then pods
// are not resized in place.
type Resizing struct {
	Allocated Checkpoint
	Actual    Actual
	Usage     Usage
}

// Pinning moves containers to their CPUs. Both may be nil.
type Pinning struct {
	// CPUs returns the cpuset of a container, "" for all CPUs.
	CPUs func(uid types.UID, container string) string
	// Pin sets the cpuset of a running container.
	Pin func(ctx context.Context, containerID, cpus string) error
}

// Node describes the node that pods run on.
type Node struct {
	// Handler finds the runtime that a pod's runtime class names.
	Handler func(*v1.Pod) (runtime.Handler, error)
	// Allocatable is used for limits that a container does not have.
	Allocatable func() v1.ResourceList
	// Network returns an error while the pod network is not ready.
	Network func() error
	HostIPs func() []string
	Pinning Pinning
}

// Runtime acts on sandboxes and containers, and records events about it.
type Runtime interface {
	// PrepareSandbox builds the configuration of the pod's sandbox.
	PrepareSandbox(context.Context, runtime.SandboxRequest) (*runtime.Sandbox, error)
	CreateSandbox(context.Context, *runtime.Sandbox) (id string, ips []string, err error)
	// PrepareContainer builds the configuration of a container from what gather returns.
	PrepareContainer(ctx context.Context, p *v1.Pod, c *v1.Container, gather func() (runtime.Input, error)) (*runtime.Container, error)
	CreateContainer(context.Context, *runtime.Container) (id string, err error)
	StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error
	// Stop stops containers, then sandboxes. It returns when all have stopped.
	Stop(ctx context.Context, p *v1.Pod, what runtime.Targets, how runtime.StopOptions) error
	// Remove removes exited containers, then sandboxes.
	Remove(ctx context.Context, ref pod.Ref, what runtime.Targets, logs runtime.Logs) error
	// UpdateResources sets the resources of a running container to those of its spec or, where c
	// is nil, those of the pod's sandbox to the pod's.
	UpdateResources(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error
}

// Logs has the log directories of pods.
type Logs interface {
	RemoveLogs(pod.Ref) error
}

// Observer has the containers and sandboxes of pods as last observed.
type Observer interface {
	Get(types.UID) (pod.Observed, bool)
	// Refresh reads the pod from the runtime now.
	Refresh(context.Context, types.UID) (pod.Observed, error)
	// List returns all pods as last observed.
	List() []pod.Observed
	// Unread reports whether the runtime has changes of the pod that Get does not show yet.
	Unread(types.UID) bool
}

// Images pulls images.
type Images interface {
	Ensure(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox image.Sandbox) (image.Image, error)
}

// Volumes mounts, unmounts and removes the volumes of pods.
type Volumes interface {
	Mount(ctx context.Context, p *v1.Pod) (map[string]volume.Mounted, error)
	Update(p *v1.Pod)
	// MountInBackground mounts the volumes of a running pod, which an earlier agent mounted.
	MountInBackground(p *v1.Pod)
	ContainerMounts(ctx context.Context, p *v1.Pod, c *v1.Container, mounted map[string]volume.Mounted, opts volume.MountOptions) ([]volume.Mount, error)
	ContainerDevices(c *v1.Container, mounted map[string]volume.Mounted) ([]volume.Device, error)
	// Health returns the health of the pod's volumes, given what the status shows; nil if unknown.
	Health(uid types.UID, shown []v1.PodVolumeHealth) []v1.PodVolumeHealth
	Unmount(ctx context.Context, uid types.UID) error
	RemovePodDir(uid types.UID) error
}

// Cgroups manages the cgroups of pods.
type Cgroups interface {
	EnsurePod(*v1.Pod) error
	PodParent(*v1.Pod) string
	RemovePod(context.Context, types.UID) error
}

// Status publishes pod statuses.
type Status interface {
	Set(*v1.Pod, v1.PodStatus) v1.PodStatus
	Get(types.UID) (v1.PodStatus, bool)
	// Published returns what the API server shows of the pod, or of its mirror, once that is known.
	Published(*v1.Pod) (status v1.PodStatus, known bool)
	// Finish marks the pod as having released its resources. If the pod is being deleted, the
	// publisher deletes its API object.
	Finish(*v1.Pod)
	// Reconcile publishes the status again where the API server shows another one.
	Reconcile(*v1.Pod)
	Forget(types.UID)
}

// Probes probes containers.
type Probes interface {
	Watch(p *v1.Pod, observed *pod.Observed, podIP string, shown *v1.PodStatus, stopping bool)
	Forget(types.UID)
	Health(containerID string) pod.Health
}

// Mirrors manages the mirror pods of static pods.
type Mirrors interface {
	Ensure(ctx context.Context, static, mirror *v1.Pod) (changed bool, err error)
	Delete(ctx context.Context, ref pod.Ref, uid types.UID) (deleted bool, err error)
}

// Objects counts the pods that use each ConfigMap and Secret.
type Objects interface {
	Register(*v1.Pod)
	Unregister(*v1.Pod)
}

// Meters are the metrics of this package; each may be nil.
type Meters struct {
	// Started is called after each attempt to start a container; failure is its reason, or "".
	Started func(kind pod.ContainerKind, failure string)
	// Began is called after each attempt to start a pod with a new sandbox. failed reports
	// whether the sandbox or a container that starts with it failed.
	Began func(p *v1.Pod, failed bool)
	// Resized is called after each attempt to change a pod's resources in place.
	Resized func(took time.Duration, success bool)
	// Rejected is called for each pod that is rejected after its admission.
	Rejected func(p *v1.Pod, reason string)
	// ImageVolumes is called after each attempt to create a container with image volumes.
	ImageVolumes func(images int, mounted bool)
}

func (m Meters) began(p *v1.Pod, failed bool) {
	if m.Began != nil {
		m.Began(p, failed)
	}
}

// Checkpoint is state on disk that survives a crash.
type Checkpoint interface {
	// Written waits until all changes so far are on disk.
	Written(context.Context) error
}

// Actual has the resources that are in force, across restarts of the kubelet.
type Actual interface {
	Checkpoint
	Get(types.UID) (pod.Resources, bool)
	Note(types.UID, pod.Resources)
	// Change updates the last value.
	Change(types.UID, func(*pod.Resources))
	Forget(types.UID)
}

// Usage reads the memory usage of a pod and of its containers, by name.
type Usage interface {
	Memory(ctx context.Context, p *v1.Pod, observed *pod.Observed) (whole uint64, each map[string]uint64, err error)
}
