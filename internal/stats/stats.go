package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/contain"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is fixed for the life of the agent.
type Config struct {
	NodeName string
	// RootDir is the kubelet's root directory; its file system is nodefs.
	RootDir string
	// PodLogsDir is the directory of container logs.
	PodLogsDir string
	// VolumePeriod is how long the result of a walk is valid (volumeStatsAggPeriod). A negative
	// one turns walks off.
	VolumePeriod time.Duration
	// PSI turns pressure stall information on (KubeletPSI).
	PSI bool
	// ExcludeHugePages subtracts preallocated huge pages from the available memory
	// (HugepageAwareEviction).
	ExcludeHugePages bool
	// PodsFromRuntime has the runtime report the usage of pods and containers
	// (PodAndContainerStatsFromCRI). Otherwise, or if the runtime cannot, it is read from the kernel.
	PodsFromRuntime bool
	// PodsCgroup is the cgroup of all pods; may be empty.
	PodsCgroup string
	// SystemCgroups are the cgroups of system daemons.
	SystemCgroups []SystemCgroup
	Machine       Machine
}

// SystemCgroup is a cgroup of system daemons.
type SystemCgroup struct {
	Name  string // kubelet, runtime or misc
	Path  string // below each controller's mount
	Start time.Time
}

// Machine is the constants of the machine.
type Machine struct {
	CPUs       int
	Memory     uint64
	Swap       uint64
	HugePages  uint64 // bytes of preallocated huge pages of all sizes
	MaxPIDs    int64
	MachineID  string
	SystemUUID string
	BootID     string
	Kernel     string
	OSImage    string
}

// Cgroups lists the cgroups of pods. cgroup.Tree implements it.
type Cgroups interface {
	Hierarchy() cgroup.Hierarchy
	Groups() ([]cgroup.Group, error)
}

// Runtime reads stats from the container runtime. cri.Client implements it.
type Runtime interface {
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
	PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error)
	ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
	ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error)
	ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error)
}

// Deps are the dependencies of Stats.
type Deps struct {
	Cgroups Cgroups
	Runtime Runtime
	// Pods returns the observed state of all pods.
	Pods func() []pod.Observed
	// Volumes lists the mounted volumes of a pod that can be measured.
	Volumes func(types.UID) []pod.MeasurableVolume
	// VolumeMeasured takes the duration of measuring a volume, by the driver's name, QuotaMethod or
	// WalkMethod.
	VolumeMeasured meter.TimingOf
	Panics         contain.Reporter
	Clock          clock.Clock
	Log            *slog.Logger
}

// Stats reads usage. Its methods are safe for concurrent use.
type Stats struct {
	cfg    Config
	deps   Deps
	groups groupReader
	boot   time.Time
	cpus   topology

	flight        singleflight.Group
	rates         rates
	measurements  measurements
	walkers       chan struct{} // a semaphore of maxWalkers
	sandboxImages sandboxImages
	runtimeFs     runtimeFsCache
	signalErrors  errorLog
	table         []family

	runtimeRates                    rates     // of containers, for runtimes that report none
	noRuntimePods, noRuntimeMetrics sync.Once // log that the runtime does not report them
}

// New validates its arguments and reads the constants of the machine.
func New(cfg Config, deps Deps) (*Stats, error) {
	if err := require.Set("new stats", map[string]any{
		"NodeName": cfg.NodeName, "RootDir": cfg.RootDir, "PodLogsDir": cfg.PodLogsDir,
		"Cgroups": deps.Cgroups, "Runtime": deps.Runtime, "Pods": deps.Pods, "Volumes": deps.Volumes,
		"Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if cfg.Machine.Memory == 0 {
		return nil, errors.New("new stats: Machine.Memory is zero")
	}
	boot, err := bootTime()
	if err != nil {
		return nil, err
	}
	return &Stats{
		cfg:           cfg,
		deps:          deps,
		groups:        newGroupReader(deps.Cgroups.Hierarchy(), cfg.Machine),
		boot:          boot,
		cpus:          readTopology(),
		rates:         newRates(),
		runtimeRates:  newRates(),
		walkers:       make(chan struct{}, maxWalkers),
		measurements:  newMeasurements(deps.Clock, deps.Panics),
		sandboxImages: newSandboxImages(),
		runtimeFs:     newRuntimeFsCache(),
		table:         cadvisorFamilies(),
	}, nil
}
