package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/device"
)

// Config is fixed for the life of the agent. Names follow the kubelet's flags and
// configuration fields.
type Config struct {
	NodeName, Hostname string
	NodeIPs            []net.IP
	Labels             map[string]string
	Taints             []v1.Taint
	ProviderID         string
	// ExternalCloud is --cloud-provider=external: someone else sets the addresses and
	// takes off the taint that the node starts with.
	ExternalCloud           bool
	RegisterNode            bool
	ControllerManagedAttach bool

	MaxPods, PodsPerCore int
	Reserved             Reserved
	// EnforceAllocatable is "pods" in enforceNodeAllocatable.
	EnforceAllocatable bool
	// Reservations are the other entries of enforceNodeAllocatable.
	Reservations []Reservation

	StatusUpdateFrequency time.Duration // how often status is looked at
	StatusReportFrequency time.Duration // how often it is sent though nothing changed
	LeaseDuration         time.Duration
	MaxImages             int // -1 is all
	Port                  int32
	Version               string // of the kubelet, as "v1.37.1"
	// Gate tells which feature gates are on, for the features that the node declares.
	Gate func(feature string) bool

	// Standalone: there is no control plane, and the Node exists in this process only.
	Standalone bool

	// RootDir holds pods' data; the size of its file system is the node's
	// ephemeral-storage. Empty leaves that resource out.
	RootDir string
	// CgroupVersion is 1 or 2.
	CgroupVersion int
}

// Runtime is what the node asks of the container runtime. *cri.Client is one.
type Runtime interface {
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
	Version(ctx context.Context) (*runtimeapi.VersionResponse, error)
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
}

// Deps are what the node works with. Functions are called from one goroutine and must not
// block; all that are not named required may be nil.
type Deps struct {
	// Client registers, Heartbeat reports and renews. Both are nil where Config.Standalone
	// is set. Heartbeat alone nil: Client does all.
	Client, Heartbeat kubernetes.Interface
	Runtime           Runtime // required
	Clock             clock.Clock
	Log               *slog.Logger // required
	Events            pod.Events   // required

	// Watched is the Node as last seen by a watch, or an error. It may lack the image list.
	Watched func() (*v1.Node, error)
	// Health says why pods cannot be observed, nil while they can.
	Health func() error
	// Unready are further reasons not to be ready (storage, shutdown), in the order told.
	Unready []func() error
	// Pressure lists the pressure conditions that eviction has set.
	Pressure func() []v1.NodeConditionType
	// Devices are the resources that device plugins bring to the node.
	Devices func() device.Amounts
	// VolumesInUse are the attachable volumes that must not be detached; false while that
	// is not known yet. VolumesReported is told of each list that the API server has.
	VolumesInUse    func() ([]v1.UniqueVolumeName, bool)
	VolumesReported func([]v1.UniqueVolumeName)
	// Enforce bounds all pods together to the given amounts.
	Enforce func(v1.ResourceList) error
	// EnforceReserved bounds a group of the system; needed where there are Reservations.
	EnforceReserved func(group string, amounts v1.ResourceList) error
	// Addressed is told the node's addresses when they are known and when they change.
	Addressed func([]v1.NodeAddress)
	// PodCIDR is told the node's pod network when the control plane assigns it.
	PodCIDR func(ctx context.Context, cidr string) error
	// Hung is called when heartbeats keep failing: the connection may be dead without
	// either end knowing.
	Hung func()
	// Jitter gives numbers in [0,1): reports of many nodes should not coincide.
	Jitter func() float64
	Meters Meters
}

// Meters are told of the node's steps into its cluster, whenever it takes them; each may
// be nil.
type Meters struct {
	// Registering: the API server is about to be asked to have the Node. Registered: it has
	// it, and had none before. Ready: it was told that the node is ready.
	Registering, Registered, Ready meter.Count
}

// Node registers this machine with the API server and keeps its status and its lease there.
type Node struct {
	*State
	deps   Deps
	steps  []step
	notify notify.Signal // the status may be out of date
	back   notify.Signal // the API server is back: register, or renew the lease
	retry  atomic.Bool   // and the status may be written
	// relisted: what Watched shows counts whatever its version.
	relisted atomic.Bool

	// These belong to the goroutine of Run.
	runtime     runtimeState
	addresses   []v1.NodeAddress
	addressesAt time.Time
	addressed   []v1.NodeAddress // what deps.Addressed was last called with
	reportDue   time.Time
	podCIDR     string
	cordoned    bool
}

// New makes the Node that state is the state of; it starts nothing.
func New(state *State, deps Deps) (*Node, error) {
	if err := require.Set("new node", map[string]any{
		"State": state, "Runtime": deps.Runtime, "Log": deps.Log, "Events": deps.Events,
	}); err != nil {
		return nil, err
	}
	cfg := &state.cfg
	if cfg.Standalone != (deps.Client == nil) {
		return nil, errors.New("new node: a client is needed unless the node is standalone")
	}
	if len(cfg.Reservations) > 0 && deps.EnforceReserved == nil {
		return nil, errors.New("new node: reservations need someone to enforce them")
	}
	if cfg.StatusUpdateFrequency <= 0 || cfg.StatusReportFrequency <= 0 || cfg.LeaseDuration <= 0 {
		return nil, errors.New("new node: status and lease times must be positive")
	}
	if deps.Clock == nil {
		deps.Clock = clock.RealClock{}
	}
	if deps.Heartbeat == nil {
		deps.Heartbeat = deps.Client
	}
	n := &Node{State: state, deps: deps, notify: notify.New(), back: notify.New()}
	n.steps = n.fillSteps()
	return n, nil
}

// Notify has the status checked now instead of at the next tick. It never blocks.
func (n *Node) Notify() {
	n.notify.Notify()
}

// Relisted says that Watched shows the Node of a new list. It is what the API server has,
// also where its version is older: versions go back when etcd is restored from a backup.
func (n *Node) Relisted() {
	n.relisted.Store(true)
	n.Notify()
}

// Retry ends the waits after requests that failed: the API server is back. It never blocks.
func (n *Node) Retry() {
	n.back.Notify()
	n.retry.Store(true)
	n.Notify()
}

func (n *Node) setCurrent(node *v1.Node) {
	n.mu.Lock()
	n.current = node
	n.mu.Unlock()
	n.reportAddresses(node)
}

func (n *Node) reportAddresses(node *v1.Node) {
	if found := node.Status.Addresses; n.deps.Addressed != nil && !slices.Equal(found, n.addressed) {
		n.addressed = slices.Clone(found)
		n.deps.Addressed(found)
	}
}
