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
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/meter"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/device"
)

// Config does not change while the agent runs. Names follow the kubelet's flags and
// configuration fields.
type Config struct {
	NodeName, Hostname string
	NodeIPs            []net.IP
	Registration

	MaxPods, PodsPerCore int
	Reserved             Reserved
	// EnforceAllocatable is "pods" in enforceNodeAllocatable.
	EnforceAllocatable bool
	// Reservations are the other entries of enforceNodeAllocatable.
	Reservations []Reservation

	Heartbeats
	MaxImages       int // -1 means all
	Port            int32
	Version         string // of the kubelet, as "v1.37.1"
	SwiftletVersion string // for an annotation; none if it is empty
	// Gate reports whether a feature gate is enabled, for status.declaredFeatures.
	Gate func(feature string) bool

	// Standalone: there is no API server, and the Node exists in this process only.
	Standalone bool
	// OnlyNode: there are no other nodes, so without a network the loopback address is the node's.
	OnlyNode bool

	// RootDir is the root directory. The size of its file system is the node's
	// ephemeral-storage; if it is empty, there is no such resource.
	RootDir string
	// CgroupVersion is 1 or 2.
	CgroupVersion int
}

// Heartbeats says how often the node reports that it is alive.
type Heartbeats struct {
	StatusUpdateFrequency time.Duration // between two computations of the status
	StatusReportFrequency time.Duration // between two reports of an unchanged status
	LeaseDuration         time.Duration
}

// Registration is what the Node object is created with.
type Registration struct {
	RegisterNode bool
	Labels       map[string]string
	Taints       []v1.Taint
	ProviderID   string
	// ExternalCloud is --cloud-provider=external: the cloud controller manager sets the
	// addresses and removes the taint that the node is registered with.
	ExternalCloud           bool
	ControllerManagedAttach bool
}

// Runtime is the part of the CRI that the node uses; *cri.Client implements it.
type Runtime interface {
	Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error)
	Version(ctx context.Context) (*runtimeapi.VersionResponse, error)
	ListImages(ctx context.Context) ([]*runtimeapi.Image, error)
}

// Deps are the dependencies of a Node. It calls the functions from one goroutine; they must
// not block. Fields that are not marked as required may be nil.
type Deps struct {
	// Client registers the node, Heartbeat reports the status and renews the lease. Both are
	// nil if Config.Standalone is set. If Heartbeat alone is nil, Client is used for all.
	Client, Heartbeat kubeclient.Interface
	Runtime           Runtime // required
	Clock             clock.Clock
	Log               *slog.Logger // required
	Events            pod.Events   // required

	// Watched returns the Node of the informer, which may lack the image list.
	Watched func() (*v1.Node, error)
	// PLEGHealthy returns why pods cannot be observed; nil if they can.
	PLEGHealthy func() error
	// ReadyChecks return further reasons not to be ready (storage, shutdown), in the order of
	// the condition's message.
	ReadyChecks []func() error
	// Pressures lists the pressure conditions that eviction has set.
	Pressures func() []v1.NodeConditionType
	// Devices returns the resources of device plugins.
	Devices func() device.Amounts
	// VolumesInUse returns the attachable volumes that must not be detached; false while that
	// is not known yet. VolumesReported is called with every list that the API server has.
	VolumesInUse    func() ([]v1.UniqueVolumeName, bool)
	VolumesReported func([]v1.UniqueVolumeName)
	// EnforceAllocatable limits the cgroup of all pods to the given amounts.
	EnforceAllocatable func(v1.ResourceList) error
	// EnforceReserved limits a system cgroup; required if Config has Reservations.
	EnforceReserved func(cgroup string, amounts v1.ResourceList) error
	// AddressesChanged is called with the node's addresses when they are first known and when
	// they change.
	AddressesChanged func([]v1.NodeAddress)
	// SetPodCIDR is called when the control plane has assigned the node's pod CIDRs.
	SetPodCIDR func(ctx context.Context, cidr string) error
	// OnRepeatedHeartbeatFailure is called when the lease renewal fails more than once in a
	// row: the connection may be dead without either end having noticed.
	OnRepeatedHeartbeatFailure func()
	// Jitter returns random numbers in [0,1), to spread the requests of many nodes.
	Jitter func() float64
	Meters Meters
}

// Meters count the steps of joining the cluster; each may be nil.
type Meters struct {
	// Registering counts attempts to create the Node, Registered created Nodes, and Ready
	// reports with a true Ready condition.
	Registering, Registered, Ready meter.Count
}

// Node registers this machine with the API server, reports its status and renews its lease.
type Node struct {
	*State
	deps          Deps
	steps         []step
	notify        notify.Signal // the status may be out of date
	apiServerBack notify.Signal // the API server is reachable again: register, or renew the lease
	retryReport   atomic.Bool   // likewise: report the status without waiting for the back-off
	// relisted: use the Node of Watched even if its resource version is older.
	relisted atomic.Bool

	// Only the status loop uses these.
	runtime           runtimeState
	addresses         []v1.NodeAddress
	addressesAt       time.Time
	notifiedAddresses []v1.NodeAddress // the last argument of AddressesChanged
	reportDue         time.Time
	podCIDR           string
	cordoned          bool
}

// New returns the Node that updates state. It starts nothing.
func New(state *State, deps Deps) (*Node, error) {
	if err := require.Set("new node", map[string]any{
		"State": state, "Runtime": deps.Runtime, "Log": deps.Log, "Events": deps.Events,
	}); err != nil {
		return nil, err
	}
	cfg := &state.cfg
	if cfg.Standalone != (deps.Client == nil) {
		return nil, errors.New("new node: Client must be set, except in standalone mode")
	}
	if len(cfg.Reservations) > 0 && deps.EnforceReserved == nil {
		return nil, errors.New("new node: missing EnforceReserved, which Reservations require")
	}
	if cfg.StatusUpdateFrequency <= 0 || cfg.StatusReportFrequency <= 0 || cfg.LeaseDuration <= 0 {
		return nil, errors.New("new node: StatusUpdateFrequency, StatusReportFrequency and LeaseDuration must be positive")
	}
	if deps.Clock == nil {
		deps.Clock = clock.RealClock{}
	}
	if deps.Heartbeat == nil {
		deps.Heartbeat = deps.Client
	}
	n := &Node{State: state, deps: deps, notify: notify.New(), apiServerBack: notify.New()}
	n.steps = n.fillSteps()
	return n, nil
}

// Notify has the status computed now instead of at the next interval. It never blocks.
func (n *Node) Notify() {
	n.notify.Notify()
}

// Relisted reports that the informer has listed the Node again. That Node is current even if
// its resource version is older: versions go back when etcd is restored from a backup.
func (n *Node) Relisted() {
	n.relisted.Store(true)
	n.Notify()
}

// Retry retries failed requests without waiting for their back-off: the API server is
// reachable again. It never blocks.
func (n *Node) Retry() {
	n.apiServerBack.Notify()
	n.retryReport.Store(true)
	n.Notify()
}

func (n *Node) setCurrent(node *v1.Node) {
	n.mu.Lock()
	n.current = node
	n.mu.Unlock()
	n.reportAddresses(node)
}

func (n *Node) reportAddresses(node *v1.Node) {
	if found := node.Status.Addresses; n.deps.AddressesChanged != nil && !slices.Equal(found, n.notifiedAddresses) {
		n.notifiedAddresses = slices.Clone(found)
		n.deps.AddressesChanged(found)
	}
}
