package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
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

// Pressure is what eviction says of the node.
type Pressure struct{ Memory, Disk, PID bool }

// Devices are the resources that plugins bring to the node.
type Devices struct {
	Capacity, Allocatable v1.ResourceList
	// Removed had a plugin once: they are reported as none, not left out.
	Removed []v1.ResourceName
}

// Deps are what the node works with. Functions are called from one goroutine and must not
// block; all that are not named required may be nil.
type Deps struct {
	// Client registers, Heartbeat reports and renews. Both nil: there is no control plane,
	// and the Node exists in this process only. Heartbeat alone nil: Client does all.
	Client, Heartbeat kubernetes.Interface
	Machine           Machine // required: ReadMachine("/")
	Runtime           Runtime // required
	Clock             clock.Clock
	Log               *slog.Logger // required
	Events            pod.Events   // required

	// Watched is the Node as last seen by a watch, or an error. It may lack the image list.
	Watched func() (*v1.Node, error)
	// Health says why pods cannot be observed, nil while they can.
	Health func() error
	// Unready are further reasons not to be ready (storage, shutdown), in the order told.
	Unready  []func() error
	Pressure func() Pressure
	Devices  func() Devices
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

// Node is this machine. Its accessors may be called from anywhere, at any time.
type Node struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	network network
	steps   []step
	poke    notify.Signal
	back    notify.Signal // the API server is back: register, or renew the lease
	retry   atomic.Bool   // and the status may be written
	// relisted: what Watched shows counts whatever its version.
	relisted atomic.Bool

	capacity, allocatable, limits v1.ResourceList

	// These belong to the goroutine of Run.
	runtime     runtimeState
	addresses   []v1.NodeAddress
	addressesAt time.Time
	addressed   []v1.NodeAddress // as last told to deps.Addressed
	reportDue   time.Time
	podCIDR     string
	cordoned    bool

	mu sync.Mutex
	// current is the Node as the API server is last known to have it, or in standalone
	// mode as it would be.
	current *v1.Node
	// noNetwork is why pods cannot be given addresses, as of the last look at the runtime.
	noNetwork error
	// registered is closed when the API server has the Node.
	registered chan struct{}
}

// New checks the configuration and works out what the machine offers; it starts nothing.
func New(cfg Config, deps Deps) (*Node, error) {
	if cfg.NodeName == "" || cfg.Hostname == "" {
		return nil, errors.New("new node: node name and host name are required")
	}
	if deps.Runtime == nil || deps.Log == nil || deps.Events == nil || deps.Machine.CPUs == 0 {
		return nil, errors.New("new node: runtime, log, events and machine are required")
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
	n := &Node{
		cfg: cfg, deps: deps, log: deps.Log,
		network:    hostNetwork(),
		poke:       notify.New(),
		back:       notify.New(),
		registered: make(chan struct{}),
	}
	n.steps = n.fillSteps()
	disk, err := diskSize(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	n.capacity = capacityOf(deps.Machine, cfg.MaxPods, cfg.PodsPerCore, disk)
	if err := checkReserved(n.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	if n.allocatable, err = allocatableOf(n.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	n.limits = cgroupLimits(deps.Machine, n.capacity, cfg.Reserved, cfg.EnforceAllocatable)
	return n, nil
}

// Poke has the status looked at now instead of at the next tick. It never blocks.
func (n *Node) Poke() {
	n.poke.Notify()
}

// Relisted says that Watched shows the Node of a new list. It is what the API server has,
// also where its version is older: versions go back when etcd is restored from a backup.
func (n *Node) Relisted() {
	n.relisted.Store(true)
	n.Poke()
}

// Retry ends the waits after requests that failed: the API server is back. It never blocks.
func (n *Node) Retry() {
	n.back.Notify()
	n.retry.Store(true)
	n.Poke()
}

// Capacity is what the machine has, without what plugins bring.
func (n *Node) Capacity() v1.ResourceList { return maps.Clone(n.capacity) }

// Allocatable is what pods may have of it.
func (n *Node) Allocatable() v1.ResourceList { return maps.Clone(n.allocatable) }

// CgroupLimits are the bounds of all pods together, for cgroup.EnsureNode.
func (n *Node) CgroupLimits() v1.ResourceList { return maps.Clone(n.limits) }

// Object is the Node as last known. It must not be changed. Before Run has worked out the
// status it holds the configuration, capacity and allocatable.
func (n *Node) Object() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil {
		node := n.blank()
		node.Status.Capacity, node.Status.Allocatable = n.Capacity(), n.Allocatable()
		return node
	}
	return n.current
}

// HostIPs are the addresses of pods on the host's network: one, or one of each family.
func (n *Node) HostIPs() []net.IP {
	n.mu.Lock()
	current := n.current
	n.mu.Unlock()
	if current != nil {
		if ips := hostIPs(current.Status.Addresses); len(ips) > 0 {
			return ips
		}
	}
	addresses, err := n.findAddresses(context.Background())
	if err != nil {
		n.log.Warn("host addresses are not known", "err", err)
	}
	return hostIPs(addresses)
}

// findAddresses looks for the node's addresses. A machine without a control plane, and
// perhaps without any network, still reaches its own pods.
func (n *Node) findAddresses(ctx context.Context) ([]v1.NodeAddress, error) {
	found, err := n.network.addresses(ctx, n.cfg.NodeName, n.cfg.Hostname, n.cfg.NodeIPs)
	if err != nil && n.deps.Client == nil && len(n.cfg.NodeIPs) == 0 {
		return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, {Type: v1.NodeHostName, Address: n.cfg.Hostname}}, nil
	}
	return found, err
}

// NetworkReady says why pods cannot be given addresses yet; nil when they can, or when
// nothing speaks against it: a pod that is tried too early says so itself.
func (n *Node) NetworkReady() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.noNetwork
}

// Registered is closed once the API server has the Node.
func (n *Node) Registered() <-chan struct{} { return n.registered }

func (n *Node) setCurrent(node *v1.Node) {
	n.mu.Lock()
	n.current = node
	n.mu.Unlock()
	n.tellAddresses(node)
}

func (n *Node) tellAddresses(node *v1.Node) {
	if found := node.Status.Addresses; n.deps.Addressed != nil && !slices.Equal(found, n.addressed) {
		n.addressed = slices.Clone(found)
		n.deps.Addressed(found)
	}
}
