package pod

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Observed is what the runtime was seen to hold of one pod at one moment.
type Observed struct {
	Ref
	// At is when the runtime's state was read, or the time the runtime put on its event.
	At time.Time
	// Sandboxes and Containers are ordered newest first.
	Sandboxes  []Sandbox
	Containers []Container
}

// Sandbox is one pod sandbox: the namespaces and network that containers join.
type Sandbox struct {
	ID             string
	Attempt        uint32
	CreatedAt      time.Time
	Ready          bool
	IPs            []string
	HostNetwork    bool
	RuntimeHandler string
	Annotations    map[string]string
}

// ContainerState is the runtime's view of one container.
type ContainerState int

const (
	Unknown ContainerState = iota
	Created
	Running
	Exited
)

func (s ContainerState) String() string {
	return [...]string{"unknown", "created", "running", "exited"}[s]
}

// Container is one container instance; restarts of the same spec container are separate.
type Container struct {
	ID           string // as the runtime gives it, without a scheme
	SandboxID    string // the sandbox it lives in, or lived
	Name         string
	RestartCount int
	State        ContainerState
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	ExitCode     int32
	Reason       string
	// Message is the runtime's own word, or the termination message once it was read.
	Message  string
	Image    string // as the user wrote it
	ImageID  string // as pod status shows it
	ImageRef string // the runtime's own id of the image
	// Hash is the hash of the spec the container was made from.
	Hash        string
	LogPath     string
	Annotations map[string]string
	User        *v1.ContainerUser
	StopSignal  *v1.Signal
	Resources   *ContainerResources
	Mounts      []Mount
}

// ContainerResources are the limits the runtime says are in force.
type ContainerResources struct {
	CPURequest, CPULimit, MemoryRequest, MemoryLimit *resource.Quantity
	// CPUs lists those that the container is bound to; empty if it is to none.
	CPUs string
}

// Mount is one mount of a running container, as the runtime reports it.
type Mount struct {
	HostPath          string
	ContainerPath     string
	ReadOnly          bool
	RecursiveReadOnly bool
	Image             string
}

// Sandbox returns the newest sandbox, nil where there is none.
func (o *Observed) Sandbox() *Sandbox {
	if o == nil || len(o.Sandboxes) == 0 {
		return nil
	}
	return &o.Sandboxes[0]
}

// Latest returns the newest instance of the named container, nil where there is none.
func (o *Observed) Latest(name string) *Container {
	if o == nil {
		return nil
	}
	i := slices.IndexFunc(o.Containers, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Containers[i]
}

// Instances returns all instances of the named container, newest first.
func (o *Observed) Instances(name string) []Container {
	var all []Container
	if o == nil {
		return nil
	}
	for _, c := range o.Containers {
		if c.Name == name {
			all = append(all, c)
		}
	}
	return all
}

// Live returns the containers that hold, or may hold, a process.
func (o *Observed) Live() []Container {
	var live []Container
	if o == nil {
		return nil
	}
	for _, c := range o.Containers {
		if c.State == Running || c.State == Unknown {
			live = append(live, c)
		}
	}
	return live
}

// Sort puts sandboxes and containers newest first. Attempts and restarts say more than
// time: two may be made within the runtime's clock resolution, and the clock may be set back.
func (o *Observed) Sort() {
	slices.SortStableFunc(o.Sandboxes, func(a, b Sandbox) int {
		if a.Attempt != b.Attempt {
			return int(b.Attempt) - int(a.Attempt)
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
	slices.SortStableFunc(o.Containers, func(a, b Container) int {
		if a.RestartCount != b.RestartCount {
			return b.RestartCount - a.RestartCount
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
}

// FindStatus returns what a pod's status says of the named container, whichever list it
// stands in; nil where it says nothing.
func FindStatus(s *v1.PodStatus, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
