package pod

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Observed is the state of one pod in the runtime at one time.
type Observed struct {
	Ref
	// At is when the runtime's state was read, or the time of the runtime's event.
	At time.Time
	// Sandboxes and Containers are ordered newest first.
	Sandboxes  []Sandbox
	Containers []Container
}

// Sandbox is one pod sandbox.
type Sandbox struct {
	ID             string
	Attempt        uint32
	CreatedAt      time.Time
	Ready          bool
	IPs            []string
	HostNetwork    bool
	RuntimeHandler string
}

// ContainerState is the state of a container in the runtime.
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

// Container is one instance of a container; each restart is another instance.
type Container struct {
	ID           string // without a scheme
	SandboxID    string // may be empty
	Name         string
	RestartCount int
	State        ContainerState
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time
	ExitCode     int32
	Reason       string
	// Message is the runtime's message, or the termination message once it was read.
	Message string
	Image   string // as in the spec
	ImageID string // as in the pod's status
	// Hash is the hash of the spec with which the container was created.
	Hash        string
	LogPath     string
	Annotations map[string]string
	User        *v1.ContainerUser
	StopSignal  *v1.Signal
	Resources   *ContainerResources
	Mounts      []Mount
}

// ContainerResources are the resources that the runtime reports.
type ContainerResources struct {
	CPURequest, CPULimit, MemoryRequest, MemoryLimit *resource.Quantity
	// CPUs is the cpuset of the container, "" if it has none.
	CPUs string
}

// Mount is a mount of a container that the runtime reports.
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

// Live returns the containers that run, or may run.
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

// Sort sorts sandboxes and containers, newest first. It compares attempts and restart counts before
// times: times may be equal, and the clock may be set back.
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

// FindStatus returns the status of the named container in any of the lists, nil if there is none.
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
