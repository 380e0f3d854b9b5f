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
)

// Deps is what the steps act through. Mirrors may be nil where there is no API server, and
// Resources where nothing gives out any.
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
	Pinning   Pinning
	Node      Node
	// Removed is called for each pod of which nothing is left; may be nil.
	Removed func(types.UID)
	Meters  Meters
	Events  pod.Events
	Clock   clock.Clock
	Log     *slog.Logger
}

// Resizing has what pods were given, have and use. All may be nil: then pods keep the
// resources that they begin with.
type Resizing struct {
	Given  Notes
	Actual Actual
	Usage  Usage
}

// Pinning keeps containers on the CPUs that are theirs. Both may be nil.
type Pinning struct {
	// CPUs lists those that a container must run on now, "" if any will do.
	CPUs func(uid types.UID, container string) string
	// Pin moves a running container there.
	Pin func(ctx context.Context, containerID, cpus string) error
}

// Node describes the node that pods run on.
type Node struct {
	// Handler finds the runtime that a pod's runtime class names.
	Handler func(*v1.Pod) (runtime.Handler, error)
	// Allocatable stands in for limits that a container does not have.
	Allocatable func() v1.ResourceList
	// Network says why pods cannot be given addresses yet; nil when they can.
	Network func() error
	HostIPs func() []string
}

// Runtime acts on sandboxes and containers. It reports to the user what it does and what it
// cannot do.
type Runtime interface {
	// PrepareSandbox makes out what the pod's sandbox is, or is going to be.
	PrepareSandbox(context.Context, runtime.SandboxRequest) (*runtime.Sandbox, error)
	CreateSandbox(context.Context, *runtime.Sandbox) (id string, ips []string, err error)
	// PrepareContainer makes out a container from what gather returns.
	PrepareContainer(ctx context.Context, p *v1.Pod, c *v1.Container, gather func() (runtime.Input, error)) (*runtime.Container, error)
	CreateContainer(context.Context, *runtime.Container) (id string, err error)
	StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error
	// Stop returns when all has ended; containers first, then sandboxes.
	Stop(ctx context.Context, p *v1.Pod, what runtime.Targets, how runtime.StopOptions) error
	// Remove removes what has ended; containers first, then sandboxes.
	Remove(ctx context.Context, ref pod.Ref, what runtime.Targets, logs runtime.Logs) error
	// UpdateResources gives a running container the resources of its spec, or, where c is nil,
	// the pod's sandbox those of the pod.
	UpdateResources(ctx context.Context, p *v1.Pod, c *v1.Container, id string) error
}

// Logs has the pods' log folders.
type Logs interface {
	RemoveLogs(pod.Ref) error
}

// Observer knows what the runtime holds of a pod.
type Observer interface {
	Get(types.UID) (pod.Observed, bool)
	// Refresh reads the runtime now, and remembers what it found.
	Refresh(context.Context, types.UID) (pod.Observed, error)
	// List is what was last seen of all pods.
	List() []pod.Observed
	// Unread reports whether the runtime holds something of the pod that Get does not know.
	Unread(types.UID) bool
}

// Images fetches images.
type Images interface {
	Ensure(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox image.Sandbox) (image.Image, error)
}

// Volumes mounts what the pod's containers need and takes away what is left of a pod.
type Volumes interface {
	Mount(ctx context.Context, p *v1.Pod) (map[string]volume.Mounted, error)
	Update(p *v1.Pod)
	// Keep has the volumes of a pod that runs already looked after.
	Keep(p *v1.Pod)
	ContainerMounts(p *v1.Pod, c *v1.Container, mounted map[string]volume.Mounted, opts volume.MountOptions) ([]volume.Mount, error)
	ContainerDevices(c *v1.Container, mounted map[string]volume.Mounted) ([]volume.Device, error)
	// Health is what ails the pod's volumes, after what was shown of it; nil if unknown.
	Health(uid types.UID, shown []v1.PodVolumeHealth) []v1.PodVolumeHealth
	Unmount(ctx context.Context, uid types.UID) error
	RemovePodDir(uid types.UID) error
}

// Cgroups keeps the pod's own cgroup.
type Cgroups interface {
	EnsurePod(*v1.Pod) error
	PodParent(*v1.Pod) string
	RemovePod(context.Context, types.UID) error
}

// Status publishes what is derived of a pod.
type Status interface {
	Set(*v1.Pod, v1.PodStatus) v1.PodStatus
	Get(types.UID) (v1.PodStatus, bool)
	// Finish says that the pod holds nothing any more; if the pod is being deleted, its API
	// object goes too.
	Finish(*v1.Pod)
	// Reconcile corrects what the API server shows of the pod.
	Reconcile(*v1.Pod)
	Forget(types.UID)
}

// Probes probes containers.
type Probes interface {
	Watch(p *v1.Pod, observed *pod.Observed, podIP string, shown *v1.PodStatus, stopping bool)
	Forget(types.UID)
	Health(containerID string) pod.Health
}

// Mirrors keeps the API server's image of static pods.
type Mirrors interface {
	Ensure(ctx context.Context, static, mirror *v1.Pod) (changed bool, err error)
	Delete(ctx context.Context, ref pod.Ref, uid types.UID) (deleted bool, err error)
}

// Objects counts who uses which ConfigMaps and Secrets.
type Objects interface {
	Register(*v1.Pod)
	Unregister(*v1.Pod)
}

// Meters measure the starting of pods and containers; each may be nil.
type Meters struct {
	// Started is called for each try to start a container, with why it failed where it did.
	Started func(kind pod.ContainerKind, failure string)
	// Began is called for each try to bring up a pod from its sandbox on, and whether that or
	// any container that was to start with it failed.
	Began func(p *v1.Pod, failed bool)
	// Resized takes how long a try to change a pod's resources took.
	Resized func(took time.Duration, success bool)
	// Rejected is called for each pod that was admitted and then rejected before it ran.
	Rejected func(p *v1.Pod, reason string)
	// ImageVolumes is called for each try to create a container that mounts images, with how
	// many, and whether the runtime could mount them.
	ImageVolumes func(images int, mounted bool)
}

func (m Meters) began(p *v1.Pod, failed bool) {
	if m.Began != nil {
		m.Began(p, failed)
	}
}

// Notes survive a crash once they are written.
type Notes interface {
	// Written waits until all that was noted so far is.
	Written(context.Context) error
}

// Actual remembers which resources pods have, across restarts of the agent.
type Actual interface {
	Notes
	Get(types.UID) (pod.Resources, bool)
	Note(types.UID, pod.Resources)
	// Change notes what it makes of what was noted last.
	Change(types.UID, func(*pod.Resources))
	Forget(types.UID)
}

// Usage returns how much memory a pod and its containers, by name, use now.
type Usage interface {
	Memory(ctx context.Context, p *v1.Pod, observed *pod.Observed) (whole uint64, each map[string]uint64, err error)
}
