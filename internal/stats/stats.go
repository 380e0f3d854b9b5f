package stats

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// Config is fixed for the life of the agent.
type Config struct {
	NodeName string
	// RootDir holds the pods' folders; the file system it lies on is the node's own.
	RootDir string
	// PodLogsDir holds the containers' logs.
	PodLogsDir string
	// VolumePeriod is how long a walk through a volume's files is good for; a negative one
	// means that volumes are not walked.
	VolumePeriod time.Duration
	// Pressure has stalls told (KubeletPSI).
	Pressure bool
	// SparesHugePages takes huge pages out of the memory that is available
	// (HugepageAwareEviction): they serve nobody else.
	SparesHugePages bool
	// PodsGroup is the group of all pods; may be empty.
	PodsGroup string
	// System are the groups of the node's own programs.
	System  []SystemGroup
	Machine Machine
}

// SystemGroup is the group of something that is not a pod.
type SystemGroup struct {
	Name  string // kubelet, runtime or misc
	Path  string // below each controller's mount
	Start time.Time
}

// Machine is what does not change while the agent runs.
type Machine struct {
	CPUs       int
	Memory     uint64
	Swap       uint64
	HugePages  uint64 // bytes set aside for huge pages of all sizes
	MaxPIDs    int64
	MachineID  string
	SystemUUID string
	BootID     string
	Kernel     string
	OSImage    string
}

// Cgroups is the pods' part of the cgroup tree; cgroup.Tree is one.
type Cgroups interface {
	Hierarchy() cgroup.Hierarchy
	Groups() ([]cgroup.Group, error)
}

// Runtime knows what the kernel does not; cri.Client is one.
type Runtime interface {
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error)
	PodSandboxStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error)
}

// Volume is one volume of a pod that is the pod's own.
type Volume struct {
	Name string
	Dir  string
	// Local ones count as the pod's ephemeral storage.
	Local bool
	// Counted tells what the kernel counts in it, false where it does not; nil for a volume
	// that it never counts.
	Counted func() (bytes, inodes uint64, ok bool)
	// Claim names the PersistentVolumeClaim behind it, if one is.
	Claim string
	// Driver names the volume's driver, where it has one.
	Driver string
	// Measure asks that driver, which knows better than the file system; nil for a volume
	// without one.
	Measure func(context.Context) (VolumeUsage, error)
}

// Deps are what statistics are made from.
type Deps struct {
	Cgroups Cgroups
	Runtime Runtime
	// Pods is what was last seen of all pods.
	Pods func() []pod.Observed
	// Volumes lists the mounted volumes of a pod whose usage means something.
	Volumes func(types.UID) []Volume
	// Measured takes how long the measuring of a volume took, by who did it: the driver,
	// CountedBy or WalkedBy.
	Measured meter.TimingOf
	Clock    clock.Clock
	Log      *slog.Logger
}

// Stats reads usage. Its methods may be called at any time by anybody.
type Stats struct {
	cfg    Config
	deps   Deps
	groups groupReader
	boot   time.Time
	cpus   topology

	flight  singleflight.Group
	rates   rates
	looks   looks
	walking chan struct{} // a place for each who walks
	images  images
	places  places
	partial complaint
	table   []family
}

// New checks its arguments and reads what never changes.
func New(cfg Config, deps Deps) (*Stats, error) {
	switch {
	case cfg.NodeName == "" || cfg.RootDir == "" || cfg.PodLogsDir == "":
		return nil, errors.New("make statistics: node name, root and log directory are needed")
	case cfg.Machine.Memory == 0:
		return nil, errors.New("make statistics: the machine's memory is not known")
	case deps.Cgroups == nil || deps.Runtime == nil || deps.Pods == nil || deps.Volumes == nil || deps.Clock == nil || deps.Log == nil:
		return nil, errors.New("make statistics: a dependency is missing")
	}
	boot, err := bootTime()
	if err != nil {
		return nil, err
	}
	return &Stats{
		cfg:     cfg,
		deps:    deps,
		groups:  newGroupReader(deps.Cgroups.Hierarchy(), cfg.Machine),
		boot:    boot,
		cpus:    readTopology(),
		rates:   newRates(),
		walking: make(chan struct{}, walkers),
		looks:   newLooks(deps.Clock),
		images:  newImages(),
		places:  newPlaces(),
		table:   cadvisorFamilies(),
	}, nil
}
