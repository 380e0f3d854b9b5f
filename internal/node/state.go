package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/require"
)

// State is the last known state of the node, also before it is registered. Node updates it.
// All methods are safe for concurrent use.
type State struct {
	cfg     Config
	machine Machine
	log     *slog.Logger
	network network

	capacity, allocatable, limits v1.ResourceList

	mu sync.Mutex
	// current is the Node that the API server has, as last known. In standalone mode it is
	// the Node that would be registered.
	current *v1.Node
	// networkErr is why the runtime's network is not ready, as of the last check.
	networkErr error
	// registered is closed when the Node is registered.
	registered chan struct{}
}

// NewState validates cfg and computes capacity and allocatable.
func NewState(cfg Config, machine Machine, log *slog.Logger) (*State, error) {
	if err := require.Set("new node state", map[string]any{
		"NodeName": cfg.NodeName, "Hostname": cfg.Hostname, "Log": log,
	}); err != nil {
		return nil, err
	}
	if machine.CPUs == 0 {
		return nil, errors.New("new node state: machine has no CPUs")
	}
	s := &State{cfg: cfg, machine: machine, log: log, network: hostNetwork(), registered: make(chan struct{})}
	disk, err := diskSize(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("new node state: %w", err)
	}
	s.capacity = capacityOf(machine, cfg.MaxPods, cfg.PodsPerCore, disk)
	if err := checkReserved(s.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node state: %w", err)
	}
	if s.allocatable, err = allocatableOf(s.capacity, cfg.Reserved); err != nil {
		return nil, fmt.Errorf("new node state: %w", err)
	}
	s.limits = cgroupLimits(machine, s.capacity, cfg.Reserved, cfg.EnforceAllocatable)
	return s, nil
}

// CheckCapacity returns an error if the reservations exceed what the machine has. It changes nothing.
func (cfg Config) CheckCapacity(machine Machine) error {
	disk, err := diskSize(existing(cfg.RootDir))
	if err != nil {
		return err
	}
	return checkReserved(capacityOf(machine, cfg.MaxPods, cfg.PodsPerCore, disk), cfg.Reserved)
}

// existing returns the directory, or the nearest one above it that exists.
func existing(dir string) string {
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// Capacity is the node's capacity without the resources of device plugins.
func (s *State) Capacity() v1.ResourceList { return maps.Clone(s.capacity) }

// Allocatable is the part of Capacity that pods may use.
func (s *State) Allocatable() v1.ResourceList { return maps.Clone(s.allocatable) }

// CgroupLimits are the limits of the cgroup of all pods, for cgroup.EnsureNode.
func (s *State) CgroupLimits() v1.ResourceList { return maps.Clone(s.limits) }

// Object is the Node as last known. Callers must not change it. Until the status is computed
// for the first time, it has labels, taints, capacity and allocatable only.
func (s *State) Object() *v1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		node := s.initialNode()
		node.Status.Capacity, node.Status.Allocatable = s.Capacity(), s.Allocatable()
		return node
	}
	return s.current
}

// HostIPs are the addresses of pods on the host network: one, or one per IP family.
func (s *State) HostIPs() []string {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current != nil {
		if ips := hostIPs(current.Status.Addresses); len(ips) > 0 {
			return ipStrings(ips)
		}
	}
	addresses, err := s.findAddresses(context.Background())
	if err != nil {
		s.log.Warn("node: cannot determine host addresses", "err", err)
	}
	return ipStrings(hostIPs(addresses))
}

func ipStrings(ips []net.IP) []string {
	var all []string
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}

// findAddresses determines the node's addresses. The only node falls back to the loopback address:
// the machine may have no network at all.
func (s *State) findAddresses(ctx context.Context) ([]v1.NodeAddress, error) {
	found, err := s.network.addresses(ctx, s.cfg.NodeName, s.cfg.Hostname, s.cfg.NodeIPs)
	if err != nil && s.cfg.OnlyNode && len(s.cfg.NodeIPs) == 0 {
		return []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}, {Type: v1.NodeHostName, Address: s.cfg.Hostname}}, nil
	}
	return found, err
}

// NetworkReady returns why the runtime's network is not ready. It returns nil if it is ready,
// and before the first check: a pod that starts too early fails and is retried.
func (s *State) NetworkReady() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.networkErr
}

// Registered returns a channel that is closed when the Node is registered.
func (s *State) Registered() <-chan struct{} { return s.registered }
