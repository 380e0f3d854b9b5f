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
	"swiftlet/internal/why"
)

// Config is the configuration of a Runtime.
type Config struct {
	// RootDir contains the pods' directories, PodLogsDir their logs.
	RootDir    string
	PodLogsDir string
	// ContainerLogsDir contains symlinks to the logs, for log collectors.
	ContainerLogsDir string
	// SysDir is where sysfs is mounted, /sys if empty.
	SysDir string

	// SeccompRoot contains the profiles of type Localhost. SeccompDefault applies the runtime's
	// default profile to containers that have none.
	SeccompRoot    string
	SeccompDefault bool

	// CPUQuota enforces CPU limits over each CPUPeriod.
	CPUQuota  bool
	CPUPeriod time.Duration
	// DefaultSysctls are set in pods that do not override them.
	DefaultSysctls map[string]string
	// MemoryCapacity is the node's memory in bytes; it scales the OOM score.
	MemoryCapacity int64
	Swap           Swap
	// CgroupV2 is nil on cgroup v1.
	CgroupV2 *CgroupV2
	// SELinux is enabled on the node, so files of the kubelet must be relabelled for containers.
	SELinux bool
}

// Cpuset is the cpuset of a container.
type Cpuset struct {
	// CPUs and Mems list CPUs and NUMA nodes in cpuset notation; empty is all.
	CPUs, Mems string
	// Exclusive: no other container runs on these CPUs, so it needs no quota.
	Exclusive bool
}

// Swap is how containers may use the node's swap.
type Swap struct {
	// Controller: the kernel can limit swap for each container.
	Controller bool
	// Limited lets burstable containers use their share of swap; otherwise none uses any.
	Limited bool
	// Capacity is the node's swap in bytes.
	Capacity int64
}

// CgroupV2 configures what only cgroup v2 supports.
type CgroupV2 struct {
	// SingleProcessOOMKill: when the kernel OOM-kills a process, the other processes of its
	// container live on.
	SingleProcessOOMKill bool
	// MemoryQOS is nil where the feature is off.
	MemoryQOS *MemoryQOS
}

// MemoryQOS protects requested memory and throttles containers near their limit.
type MemoryQOS struct {
	// Reserve makes requests a guarantee (memory.min, memory.low).
	Reserve bool
	// ThrottlingFactor sets memory.high between request and limit; nil sets none.
	ThrottlingFactor *float64
	// Allocatable is the node's allocatable memory, for containers without a limit.
	Allocatable int64
}

// Sandboxes are the CRI calls for sandboxes.
type Sandboxes interface {
	RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error)
	SandboxIPs(ctx context.Context, id string) ([]string, error)
	StopPodSandbox(ctx context.Context, id string) error
	RemovePodSandbox(ctx context.Context, id string) error
}

// Containers are the CRI calls for containers. Stopping or removing a container that does not
// exist succeeds.
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

// DNS configures names and resolvers of pods.
type DNS interface {
	// PodDNS returns the pod's resolver configuration.
	PodDNS(p *v1.Pod) (*runtimeapi.DNSConfig, error)
	// KernelHostname returns the hostname in the pod's UTS namespace.
	KernelHostname(p *v1.Pod) (string, error)
	// EnsureHosts writes the pod's hosts file at path.
	EnsureHosts(path string, p *v1.Pod, ips []string) error
}

// HTTP sends the requests of lifecycle hooks.
type HTTP interface {
	Do(*http.Request) (*http.Response, error)
}

// Meters are the metrics of a Runtime; each may be nil.
type Meters struct {
	// Sandbox measures RunPodSandbox, by runtime handler.
	Sandbox meter.CallsOf
	// Started is called after each attempt to create a sandbox.
	Started func(p *v1.Pod, err error)
	// HookFallback counts the HTTPS hooks that fell back to HTTP, SleepTerminated the sleep
	// hooks that ended early because their container was stopped.
	HookFallback, SleepTerminated meter.Count
}

// Deps are the dependencies of a Runtime. Those that are optional may be nil.
type Deps struct {
	CRI    CRI
	DNS    DNS
	Events pod.Events
	Meters Meters
	// Why is optional. It records the steps that containers take.
	Why   *why.Tracker
	Log   *slog.Logger
	Clock clock.Clock
	// Random returns random file names.
	Random func() uint32
	// LogTail reads the last lines of a container's log, at most size bytes of them.
	LogTail func(path string, lines, size int) ([]byte, error)
	// RemoveTree removes a directory with everything in it. It follows no link and enters no mount point.
	RemoveTree func(path string) error
	// HTTP is optional. The default does not verify certificates, as it has no CA to verify them
	// with, and sends no credentials.
	HTTP HTTP
	// Cpuset is optional. It returns the cpuset of a container.
	Cpuset func(p *v1.Pod, c *v1.Container) Cpuset
	// ExclusiveCPUs is optional. It reports whether the pod has exclusive CPUs, which need no quota.
	ExclusiveCPUs func(p *v1.Pod) bool
	// UserNamespace is optional. It returns the ID mappings of pods with hostUsers: false.
	UserNamespace func(p *v1.Pod) (*runtimeapi.UserNamespace, error)
}

// Runtime acts on the sandboxes and containers of the node's pods.
type Runtime struct {
	cfg         Config
	deps        Deps
	maskedPaths []string
	pageSizes   []string
}

// New validates cfg and reads the kernel's huge page sizes. It starts nothing.
func New(cfg Config, deps Deps) (*Runtime, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("new runtime: %w", err)
	}
	if err := require.Set("new runtime", map[string]any{
		"CRI": deps.CRI, "DNS": deps.DNS, "Events": deps.Events, "Log": deps.Log,
		"Clock": deps.Clock, "Random": deps.Random, "LogTail": deps.LogTail, "RemoveTree": deps.RemoveTree,
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
		errs = append(errs, errors.New("memory capacity is unknown"))
	}
	if c.CPUQuota && c.CPUPeriod < time.Millisecond {
		errs = append(errs, fmt.Errorf("CPU period %s is below the kernel's minimum", c.CPUPeriod))
	}
	return errors.Join(errs...)
}
