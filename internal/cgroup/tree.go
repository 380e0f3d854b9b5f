package cgroup

import (
	"fmt"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Driver is the cgroup driver. The container runtime must use the same.
type Driver string

const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Config configures the tree. It does not change while the kubelet runs.
type Config struct {
	Driver Driver
	// Root is the path of the parent cgroup of kubepods.
	Root string
	// QOSReserved is nil where no memory is reserved from lower QoS classes.
	QOSReserved *QOSReserved
	Limits
}

// Deps are the dependencies of a Tree.
type Deps struct {
	// Hierarchy is the result of Detect.
	Hierarchy Hierarchy
	// HasExclusiveCPUs reports whether the CPU manager assigned exclusive CPUs to a pod, which
	// needs no CPU quota then; may be nil.
	HasExclusiveCPUs func(*v1.Pod) bool
	// Duration measures how long the creation, update and removal of cgroups take; may be nil.
	Duration meter.TimingOf
	// Protected is called with the memory that UpdateQOS protects from reclaim, in bytes: that of
	// guaranteed pods always, that of burstable pods while other memory can be reclaimed; may be
	// nil.
	Protected func(guaranteed, burstable int64)
	Clock     clock.Clock
	Log       *slog.Logger
}

// Tree is the subtree of the pods' cgroups. Its methods may be called concurrently, but those
// for one pod only by that pod's worker.
type Tree struct {
	Limits
	driver           Driver
	hierarchy        Hierarchy
	kubepods         cgroupName
	qosReserved      *QOSReserved
	writer           writer
	hasExclusiveCPUs func(*v1.Pod) bool
	duration         meter.TimingOf
	protected        func(guaranteed, burstable int64)
	clock            clock.Clock
	log              *slog.Logger

	mu sync.Mutex
	// allocatable was last passed to EnsureNode. It is used to recreate cgroups that something
	// removed.
	allocatable v1.ResourceList
	// qos holds the requests from which the limits of the QoS classes were last computed.
	qos qosRequests
	// applied holds each pod's limits as last written, to skip writes that change nothing.
	applied map[types.UID]Resources
}

// New validates the configuration and writes nothing.
func New(c Config, d Deps) (*Tree, error) {
	if c.CFSPeriod <= 0 {
		return nil, fmt.Errorf("new cgroup tree: CFS period is %v", c.CFSPeriod)
	}
	if err := require.Set("new cgroup tree", map[string]any{
		"Hierarchy.Mounts": d.Hierarchy.Mounts, "Clock": d.Clock, "Log": d.Log,
	}); err != nil {
		return nil, err
	}
	t := &Tree{
		Limits:           c.Limits,
		driver:           c.Driver,
		hierarchy:        d.Hierarchy,
		kubepods:         parsePath(c.Root).child(kubepodsName),
		qosReserved:      c.QOSReserved,
		hasExclusiveCPUs: d.HasExclusiveCPUs,
		duration:         d.Duration,
		protected:        d.Protected,
		clock:            d.Clock,
		log:              d.Log,
		applied:          map[types.UID]Resources{},
	}
	switch c.Driver {
	case Cgroupfs:
		t.writer = cgroupfsWriter{d.Hierarchy}
	case Systemd:
		t.writer = systemdWriter{d.Hierarchy}
	default:
		return nil, fmt.Errorf("new cgroup tree: unknown driver %q", c.Driver)
	}
	if d.Duration != nil {
		t.writer = timedWriter{t.writer, d.Duration, d.Clock}
	}
	return t, nil
}

// Version is 1 or 2.
func (t *Tree) Version() int { return t.hierarchy.Version }

// qosCgroup returns the parent of the cgroups of pods of a QoS class.
func (t *Tree) qosCgroup(q v1.PodQOSClass) cgroupName {
	switch q {
	case v1.PodQOSBurstable:
		return t.kubepods.child(burstable)
	case v1.PodQOSBestEffort:
		return t.kubepods.child(besteffort)
	default:
		return t.kubepods
	}
}

// qosCgroups returns the parents of all cgroups of pods.
func (t *Tree) qosCgroups() []cgroupName {
	return []cgroupName{t.kubepods, t.qosCgroup(v1.PodQOSBurstable), t.qosCgroup(v1.PodQOSBestEffort)}
}

func (t *Tree) podCgroup(p *v1.Pod) cgroupName {
	return t.qosCgroup(pod.QOS(p)).child(podPrefix + string(p.UID))
}

// PodParent returns p's cgroup for CRI's sandbox configuration.
func (t *Tree) PodParent(p *v1.Pod) string {
	return t.podCgroup(p).criParent(t.driver)
}

// PodDir returns the directory of p's cgroup in the controller's tree, "" where the controller is
// not mounted.
func (t *Tree) PodDir(p *v1.Pod, controller string) string {
	return t.hierarchy.Dir(controller, t.podCgroup(p).path(t.driver))
}

// CanLimitSwap reports whether the kernel can limit the swap of a cgroup.
func (t *Tree) CanLimitSwap() bool { return t.hierarchy.CanLimitSwap() }

// Kubepods is the path of the cgroup of all pods below each controller's mount.
func (t *Tree) Kubepods() string { return t.kubepods.path(t.driver) }
