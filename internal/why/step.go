package why

import "fmt"

// Kind is the kind of a step. Kinds are in the order in which steps block each other.
type Kind uint8

const (
	// Admission ends when the pod has a worker.
	Admission Kind = iota
	// Observe reads the pod from the container runtime. Only its failures are recorded.
	Observe
	Network
	Resources
	Cgroup
	Sandbox
	Volume
	ImageVolume
	Image
	Create
	Start
	PostStart
	Startup
	Liveness
	Readiness
	Resize
	PreStop
	Kill
	StopSandbox
	Release
	Unmount
	RemoveCgroup
	Remove
)

var kindNames = [...]string{
	Admission: "admission", Observe: "read from runtime", Network: "pod network of node", Resources: "devices and claims", Cgroup: "cgroup",
	Sandbox: "sandbox", Volume: "volume", ImageVolume: "image volume", Image: "image", Create: "create", Start: "start",
	PostStart: "postStart hook", Startup: "startup probe", Liveness: "liveness probe", Readiness: "readiness probe",
	Resize: "resize", PreStop: "preStop hook", Kill: "stop", StopSandbox: "stop sandbox", Release: "release claims",
	Unmount: "unmount", RemoveCgroup: "remove cgroup", Remove: "remove",
}

func (k Kind) String() string { return kindNames[k] }

// MarshalText is the kind in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("read kind of step: %q is none", text)
}

// ofContainer reports whether steps of this kind have the name of a container.
func (k Kind) ofContainer() bool {
	switch k {
	case Image, Create, Start, PostStart, Startup, Liveness, Readiness, PreStop, Kill:
		return true
	}
	return false
}

// ends reports whether steps of this kind belong to the end of a pod.
func (k Kind) ends() bool { return k >= PreStop }

// Step is one step of a pod. Name is that of its container or volume, "" for a step of the whole pod.
type Step struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
}
