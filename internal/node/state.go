package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// State is what is known of the node at any time, from before it is registered. Node keeps
// it up to date. All methods may be called from anywhere.
type State struct {
	cfg     Config
	machine Machine
	log     *slog.Logger
	network network

	capacity, allocatable, limits v1.ResourceList

	mu sync.Mutex
	// current is the Node as the API server is last known to have it, or in standalone
	// mode as it would be.
	current *v1.Node
	// noNetwork is why pods cannot be given addresses, as of the last check of the runtime.
	noNetwork error
	// registered is closed when the API server has the Node.
	registered chan struct{}
}

// NewState checks the configuration and computes what the machine offers.
func NewState(cfg Config, machine Machine, log *slog.Logger) (*State, error) {
	if cfg.NodeName == "" || cfg.Hostname == "" {
		return nil, errors.New("new node: node name and host name are required")
	}
	if log == nil || machine.CPUs == 0 {
		return nil, errors.New("new node: log and machine are required")
	}
	s := &State{cfg: cfg, machine: machine, log: log, network: hostNetwork(), registered: make(chan struct{})}
	disk, err := diskSize(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	s.capacity = capacityOf(machine, cfg.MaxPods, cfg.PodsPerCore, disk)
	if err := checkReserved(s.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	if s.allocatable, err = allocatableOf(s.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	s.limits = cgroupLimits(machine, s.capacity, cfg.Reserved, cfg.EnforceAllocatable)
	return s, nil
}

// Capacity is what the machine has, without what device plugins bring.
func (s *State) Capacity() v1.ResourceList { return maps.Clone(s.capacity) }

// Allocatable is what pods may have of it.
func (s *State) Allocatable() v1.ResourceList { return maps.Clone(s.allocatable) }

// CgroupLimits are the limits of all pods together, for cgroup.EnsureNode.
func (s *State) CgroupLimits() v1.ResourceList { return maps.Clone(s.limits) }

// Object is the Node as last known. It must not be changed. Before the status is computed
// for the first time it holds the configuration, capacity and allocatable.
func (s *State) Object() *v1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		node := s.blank()
		node.Status.Capacity, node.Status.Allocatable = s.Capacity(), s.Allocatable()
		return node
	}
	return s.current
}

// HostIPs are the addresses of pods on the host's network: one, or one of each family.
func (s *State) HostIPs() []string {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current != nil {
		if ips := hostIPs(current.Status.Addresses); len(ips) > 0 {
			return texts(ips)
		}
	}
	addresses, err := s.findAddresses(context.Background())
	if err != nil {
		s.log.Warn("node: cannot find the host's addresses", "err", err)
	}
	return texts(hostIPs(addresses))
}

func texts(ips []net.IP) []string {
	var all []string
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}

// findAddresses finds the node's addresses. A machine without a control plane, and perhaps
// without any network, still reaches its own pods.
func (s *State) findAddresses(ctx context.Context) ([]v1.NodeAddress, error) {
	found, err := s.network.addresses(ctx, s.cfg.NodeName, s.cfg.Hostname, s.cfg.NodeIPs)
	if err != nil && s.cfg.Standalone && len(s.cfg.NodeIPs) == 0 {
		return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, {Type: v1.NodeHostName, Address: s.cfg.Hostname}}, nil
	}
	return found, err
}

// NetworkReady returns why pods cannot be given addresses yet. It returns nil when they can,
// and before the runtime was checked: the start of a pod that comes too early fails by itself.
func (s *State) NetworkReady() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noNetwork
}

// Registered is closed once the API server has the Node.
func (s *State) Registered() <-chan struct{} { return s.registered }
