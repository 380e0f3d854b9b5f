package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is what holds for all pods of the node.
type Config struct {
	// RootDir holds the pods' folders, PodLogsDir their logs.
	RootDir    string
	PodLogsDir string
	// ContainerLogsDir holds links to the logs for collectors that look there.
	ContainerLogsDir string
	// SysDir is where the kernel shows itself, /sys if empty.
	SysDir string

	// SeccompRoot holds the profiles that pods name as Localhost; SeccompDefault confines
	// containers that name none.
	SeccompRoot    string
	SeccompDefault bool

	// CPUQuota enforces CPU limits over each CPUPeriod.
	CPUQuota  bool
	CPUPeriod time.Duration
	// DefaultSysctls are the kernel parameters of pods that do not say otherwise.
	DefaultSysctls map[string]string
	// MemoryCapacity is the node's memory in bytes; it scales the OOM score.
	MemoryCapacity int64
	Swap           Swap
	// V2 is nil on cgroup v1.
	V2 *V2
	// SELinux: the node labels files, so that ours need relabelling for containers.
	SELinux bool
}

// Place is the part of the machine that a container runs on.
type Place struct {
	// CPUs and Memory list CPUs and NUMA nodes; empty means all.
	CPUs, Memory string
	// Alone: no other container runs on these CPUs, so no quota is needed.
	Alone bool
}

// Swap says how containers may use the node's swap.
type Swap struct {
	// Controller: the kernel can bound swap for each container.
	Controller bool
	// Limited gives burstable containers their share, otherwise none gets any.
	Limited bool
	// Capacity is the node's swap in bytes.
	Capacity int64
}

// V2 is what only cgroup v2 can do.
type V2 struct {
	// SingleProcessOOMKill leaves the rest of a container alive when the kernel kills one
	// of its processes.
	SingleProcessOOMKill bool
	// MemoryQOS is nil where the feature is off.
	MemoryQOS *MemoryQOS
}

// MemoryQOS protects requested memory and slows down containers near their limit.
type MemoryQOS struct {
	// Reserve makes requests a guarantee (memory.min, memory.low).
	Reserve bool
	// ThrottlingFactor places memory.high between request and limit; nil sets none.
	ThrottlingFactor *float64
	// Allocatable is what there is for pods: the limit of containers without one.
	Allocatable int64
}

// Sandboxes is what is asked of the container runtime about sandboxes.
type Sandboxes interface {
	RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error)
	SandboxIPs(ctx context.Context, id string) ([]string, error)
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
}

// Containers is what is asked of the container runtime about containers. Stopping or
// removing what is gone is success.
type Containers interface {
	CreateContainer(ctx context.Context, sandboxID string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error)
	StartContainer(ctx context.Context, id string) error
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	UpdatePodSandboxResources(ctx context.Context, id string, overhead, resources *runtimeapi.LinuxContainerResources) error
	UpdateContainerResources(ctx context.Context, id string, linux *runtimeapi.LinuxContainerResources) error
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (cri.ExecResult, error)
}

// CRI is the container runtime.
type CRI interface {
	Sandboxes
	Containers
}

// DNS names pods.
type DNS interface {
	// PodDNS is the pod's resolver configuration.
	PodDNS(p *v1.Pod) (*runtimeapi.DNSConfig, error)
	// KernelHostname is what the pod's processes are to see as their host.
	KernelHostname(p *v1.Pod) (string, error)
	// EnsureHosts brings the pod's hosts file at path up to date.
	EnsureHosts(path string, p *v1.Pod, ips []string) error
}

// HTTP sends the requests of lifecycle hooks.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Meters measure what is done to pods; each may be nil.
type Meters struct {
	// Sandbox takes how long the container runtime took to make a sandbox, by handler.
	Sandbox meter.CallsOf
	// Started is told of each try to give a pod a sandbox and of how it ended.
	Started func(p *v1.Pod, err error)
	// HookFallback counts the hooks over HTTPS that were answered over HTTP, SleepCut the
	// hooks that were to sleep for longer than their container lived.
	HookFallback, SleepCut meter.Count
}

// Deps are a Runtime's collaborators; those marked optional may be nil.
type Deps struct {
	CRI    CRI
	DNS    DNS
	Events pod.Events
	Meters Meters
	Log    *slog.Logger
	Clock  clock.Clock
	// Random names files that must not collide.
	Random func() uint32
	// LogTail reads the last lines of a container's log, at most size bytes of them.
	LogTail func(path string, lines, size int) ([]byte, error)
	// HTTP is optional; the default verifies no certificate, as it has nothing to verify
	// one against, and carries no credentials.
	HTTP HTTP
	// Place is optional; it says which part of the machine a container runs on.
	Place func(p *v1.Pod, c *v1.Container) Place
	// Alone is optional; it reports whether the pod has CPUs of its own, which need no quota.
	Alone func(p *v1.Pod) bool
	// UserNamespace is optional; it maps the ids of pods that ask not to share the host's.
	UserNamespace func(p *v1.Pod) (*runtimeapi.UserNamespace, error)
}

// Runtime acts on the pods of one node.
type Runtime struct {
	cfg         Config
	deps        Deps
	maskedPaths []string
	pageSizes   []string
}

// New validates cfg and reads what the kernel offers. It starts nothing.
func New(cfg Config, deps Deps) (*Runtime, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("new runtime: %w", err)
	}
	if err := require.Set("new runtime", map[string]any{
		"CRI": deps.CRI, "DNS": deps.DNS, "Events": deps.Events, "Log": deps.Log,
		"Clock": deps.Clock, "Random": deps.Random, "LogTail": deps.LogTail,
	}); err != nil {
		return nil, err
	}
	if cfg.SysDir == "" {
		cfg.SysDir = "/sys"
	}
	if deps.HTTP == nil {
		deps.HTTP = newHookClient()
	}
	sizes, err := hugePageSizes(cfg.SysDir)
	if err != nil {
		return nil, fmt.Errorf("new runtime: %w", err)
	}
	return &Runtime{cfg: cfg, deps: deps, maskedPaths: defaultMaskedPaths(cfg.SysDir), pageSizes: sizes}, nil
}

func (c Config) validate() error {
	var errs []error
	for name, dir := range map[string]string{"root": c.RootDir, "pod logs": c.PodLogsDir, "container logs": c.ContainerLogsDir} {
		if dir == "" || dir[0] != '/' {
			errs = append(errs, fmt.Errorf("%s directory %q is not absolute", name, dir))
		}
	}
	if c.MemoryCapacity <= 0 {
		errs = append(errs, errors.New("the node's memory capacity is unknown"))
	}
	if c.CPUQuota && c.CPUPeriod < time.Millisecond {
		errs = append(errs, fmt.Errorf("CPU period %s is below the kernel's minimum", c.CPUPeriod))
	}
	return errors.Join(errs...)
}
