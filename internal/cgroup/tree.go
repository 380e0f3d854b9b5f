package cgroup

import (
	"fmt"
	"log/slog"
	"path"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Driver says who makes the directories. It must be the runtime's driver too.
type Driver string

const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Config is fixed for the life of the agent.
type Config struct {
	Driver Driver
	// Root is the group below which kubepods lies: "/", or a path.
	Root string
	// QOSReserve is nil where nothing is kept from lower QoS classes.
	QOSReserve *QOSReserve
	Limits
}

// Deps are what the tree works with.
type Deps struct {
	// Hierarchy is Detect's answer.
	Hierarchy Hierarchy
	// Alone, where set, reports whether a pod has CPUs of its own, which need no quota.
	Alone func(*v1.Pod) bool
	// Took, where set, takes how long it took to create, update and destroy groups.
	Took  meter.TimingOf
	Clock clock.Clock
	Log   *slog.Logger
}

// Tree is the pods' part of the cgroup tree. Its methods may be called concurrently;
// those about one pod are for that pod's worker alone.
type Tree struct {
	Limits
	driver    Driver
	hierarchy Hierarchy
	top       name
	reserve   *QOSReserve
	writer    writer
	alone     func(*v1.Pod) bool
	took      meter.TimingOf
	clock     clock.Clock
	log       *slog.Logger

	mu sync.Mutex
	// node is what EnsureNode was last told, to restore a tree that someone removed.
	node v1.ResourceList
	// qos is what the classes' bounds were last made from.
	qos qosRequests
	// applied holds each pod's bounds as last written, to leave the kernel alone where
	// nothing changed.
	applied map[types.UID]Resources
}

// New checks the configuration; it touches nothing.
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
		Limits:    c.Limits,
		driver:    c.Driver,
		hierarchy: d.Hierarchy,
		top:       parseRoot(c.Root).child(topGroup),
		reserve:   c.QOSReserve,
		alone:     d.Alone,
		took:      d.Took,
		clock:     d.Clock,
		log:       d.Log,
		applied:   map[types.UID]Resources{},
	}
	switch c.Driver {
	case Cgroupfs:
		t.writer = directories{d.Hierarchy}
	case Systemd:
		t.writer = sliceUnits{d.Hierarchy}
	default:
		return nil, fmt.Errorf("new cgroup tree: unknown driver %q", c.Driver)
	}
	if d.Took != nil {
		t.writer = timedWriter{t.writer, d.Took, d.Clock}
	}
	return t, nil
}

// Version is 1 or 2.
func (t *Tree) Version() int { return t.hierarchy.Version }

// class is the group that pods of the QoS class live in.
func (t *Tree) class(q v1.PodQOSClass) name {
	switch q {
	case v1.PodQOSBurstable:
		return t.top.child(burstable)
	case v1.PodQOSBestEffort:
		return t.top.child(besteffort)
	default:
		return t.top
	}
}

func (t *Tree) classes() []name {
	return []name{t.top, t.class(v1.PodQOSBurstable), t.class(v1.PodQOSBestEffort)}
}

func (t *Tree) podName(p *v1.Pod) name {
	return t.class(pod.QOS(p)).child(podPrefix + string(p.UID))
}

// PodParent is p's group as CRI is to be told of it.
func (t *Tree) PodParent(p *v1.Pod) string {
	return t.podName(p).parent(t.driver)
}

// PodDir is the directory of p's group in the controller's tree; "" where the controller
// is not mounted. On v2 all controllers share one tree.
func (t *Tree) PodDir(p *v1.Pod, controller string) string {
	if t.hierarchy.Version == 2 {
		controller = ""
	}
	mount := t.hierarchy.Mounts[controller]
	if mount == "" {
		return ""
	}
	return path.Join(mount, t.podName(p).path(t.driver))
}

// BoundsSwap reports whether the kernel can bound a group's swap.
func (t *Tree) BoundsSwap() bool { return t.hierarchy.BoundsSwap() }

// Kubepods is the path of the cgroup of all pods below each controller's mount.
func (t *Tree) Kubepods() string { return t.top.path(t.driver) }
