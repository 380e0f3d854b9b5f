package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/config"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
	"swiftlet/internal/resource/topology"
)

// Memory manager policies.
const (
	None   = "None"
	Static = "Static"
)

// Config configures the memory manager.
type Config struct {
	Policy  string
	Machine *topology.Machine
	// Reserved is the reservation of each NUMA node; the sums must equal Reservation.
	Reserved map[int]v1.ResourceList
	// Reservation is what the whole node reserves.
	Reservation v1.ResourceList
	// PodLevel enables allocations for pods with pod-level resources.
	PodLevel bool
	// Path is the state file.
	Path string
}

// Deps are what Memory works with.
type Deps struct {
	// WarnNode records a warning event about the node.
	WarnNode         func(reason, message string)
	Requests, Errors meter.Count
	Log              *slog.Logger
}

// Memory is the memory manager. It is safe for concurrent use.
type Memory struct {
	cfg    Config
	deps   Deps
	policy staticPolicy
	file   *statefile.Writer

	mu    sync.Mutex
	state State
}

// New restores the allocations of an earlier run of the agent. It starts nothing.
func New(cfg Config, deps Deps) (*Memory, error) {
	if err := require.Set("new memory manager", map[string]any{
		"Machine": cfg.Machine, "WarnNode": deps.WarnNode, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.Path) {
		return nil, errors.New("new memory manager: Path must be an absolute path")
	}
	m := &Memory{cfg: cfg, deps: deps, policy: staticPolicy{cfg.PodLevel}}
	m.file = statefile.NewWriter(func() error { return m.write(m.snapshot()) })
	fresh, err := cfg.initialState()
	if err != nil || cfg.Policy == None {
		return m, err
	}
	if m.state, err = m.load(fresh); err != nil {
		return nil, err
	}
	// The agent starts on a full disk, too: every allocation is written before it is used.
	if err := m.write(m.state); err != nil {
		m.deps.Log.Error("memory manager: cannot write state file", "err", err)
	}
	return m, nil
}

// Check returns an error if the policy is not possible on the machine. It changes nothing.
func (cfg Config) Check() error {
	_, err := cfg.initialState()
	return err
}

// initialState returns the machine's state without any allocation; empty if the policy is None.
func (cfg Config) initialState() (State, error) {
	switch cfg.Policy {
	case None:
		return State{}, nil
	case Static:
	default:
		return State{}, config.Invalid("memoryManagerPolicy", "unknown policy %q", cfg.Policy)
	}
	if err := cfg.checkReservation(); err != nil {
		return State{}, err
	}
	s := State{Nodes: map[int]*NodeState{}, Containers: map[types.UID]map[string][]Block{}, Pods: map[types.UID][]Block{}}
	for _, n := range cfg.Machine.Nodes {
		if _, err := numa.NewNodes(n.ID); err != nil {
			return s, err
		}
		node := &NodeState{MemoryMap: map[v1.ResourceName]*Table{}, Cells: []int{n.ID}}
		left := n.Memory
		for size, pages := range n.HugePages {
			kind := v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(int64(size), resource.BinarySI).String())
			node.MemoryMap[kind] = cfg.table(n.ID, kind, size*pages, size*pages)
			left -= min(left, size*pages)
		}
		node.MemoryMap[v1.ResourceMemory] = cfg.table(n.ID, v1.ResourceMemory, n.Memory, left)
		s.Nodes[n.ID] = node
	}
	return s, nil
}

func (cfg Config) table(node int, kind v1.ResourceName, total, left uint64) *Table {
	amount := cfg.Reserved[node][kind]
	reserved := uint64(max(amount.Value(), 0))
	free := left - min(left, reserved)
	return &Table{TotalMemSize: total, SystemReserved: reserved, Allocatable: free, Free: free}
}

// checkReservation checks that the reservations of the NUMA nodes add up to the node's.
func (cfg Config) checkReservation() error {
	sums := v1.ResourceList{}
	for id, list := range cfg.Reserved {
		if !slices.ContainsFunc(cfg.Machine.Nodes, func(n topology.Node) bool { return n.ID == id }) {
			return config.Invalid("reservedMemory", "this machine has no NUMA node %d", id)
		}
		for kind, amount := range list {
			sum := sums[kind]
			sum.Add(amount)
			sums[kind] = sum
		}
	}
	if amount := sums[v1.ResourceMemory]; amount.Sign() <= 0 {
		return config.Invalid("memoryManagerPolicy", "Static needs reservedMemory, which reserves no memory of any NUMA node")
	}
	for _, lists := range [][2]v1.ResourceList{{sums, cfg.Reservation}, {cfg.Reservation, sums}} {
		for kind := range lists[0] {
			if kind != v1.ResourceMemory && !strings.HasPrefix(string(kind), v1.ResourceHugePagesPrefix) {
				continue
			}
			if sum, reserved := sums[kind], cfg.Reservation[kind]; !sum.Equal(reserved) {
				return config.Invalid("reservedMemory", "the NUMA nodes reserve %s of %s, but kubeReserved, systemReserved and evictionHard reserve %s",
					sum.String(), kind, reserved.String())
			}
		}
	}
	return nil
}

// load reads the state file. It moves a corrupt one aside and records an event; pods are
// allocated memory again when they are admitted.
func (m *Memory) load(fresh State) (State, error) {
	policy, s, err := format.Read(m.cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fresh, nil
	case err != nil && !errors.Is(err, statefile.ErrCorrupt):
		return State{}, err
	case err != nil:
		aside, asideErr := statefile.SetAside(m.cfg.Path, ".bad")
		m.warn("InvalidMemoryManagerState", "%s: %v; it is kept as %s", m.cfg.Path, err, aside)
		return fresh, asideErr
	case policy != Static: // without allocations
		return fresh, nil
	}
	now, lost := s.restoreOnto(fresh)
	for _, uid := range lost {
		m.warn("MemoryManagerStateChanged", "pod %s had memory of a NUMA node that is gone", uid)
	}
	if len(lost) == 0 && !sameNodes(s, now) {
		m.deps.Log.Info("memory manager: machine memory or reservation changed since last run")
	}
	return now, nil
}

// format is the format of the state file.
var format = statefile.Format[State]{Owner: "memory manager", Decode: decode}

// CheckStateFile returns an error if a state file exists and cannot be used. It changes nothing.
func CheckStateFile(path string) error { return format.Check(path) }

func (m *Memory) warn(reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	m.deps.Log.Warn("memory manager: state changed", "reason", reason, "message", message)
	m.deps.WarnNode(reason, message)
}

func (m *Memory) write(s State) error {
	raw, err := encode(s)
	if err == nil {
		err = checkpoint.Replace(m.cfg.Path, raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write memory manager state: %w", err)
	}
	return nil
}

func (m *Memory) snapshot() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Hints implements numa.Provider.
func (m *Memory) Hints(p *v1.Pod, c *v1.Container) numa.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	s := m.snapshot()
	if blocks, ok := s.Containers[p.UID][c.Name]; ok {
		return hintsOfBlocks(blocks)
	}
	return s.hintsFor(p, m.policy.requested(p, c))
}

// PodHints implements numa.Provider.
func (m *Memory) PodHints(p *v1.Pod) numa.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	s := m.snapshot()
	if hasPodLevelResources(p) {
		return m.policy.podLevelHints(s, p)
	}
	for c := range pod.Containers(p) {
		if blocks, ok := s.Containers[p.UID][c.Name]; ok {
			return hintsOfBlocks(blocks)
		}
	}
	return s.hintsFor(p, m.policy.podRequested(p))
}

// Allocate implements numa.Provider.
func (m *Memory) Allocate(_ context.Context, p *v1.Pod, c *v1.Container, hint numa.Hint) error {
	requested := m.policy.requested(p, c)
	if m.cfg.Policy != Static || len(requested) == 0 {
		return nil
	}
	return m.update(p, func(s State) (State, error) { return s.allocate(p, c, requested, hint) })
}

// AllocatePod implements numa.PodProvider.
func (m *Memory) AllocatePod(_ context.Context, p *v1.Pod, hint numa.Hint) error {
	if m.cfg.Policy != Static || len(m.policy.podRequested(p)) == 0 {
		return nil
	}
	return m.update(p, func(s State) (State, error) { return m.policy.allocatePod(s, p, hint) })
}

// Written returns when the allocations so far are in the state file. It must be called before they take effect.
func (m *Memory) Written(ctx context.Context) error { return m.file.Written(ctx) }

// update applies a change in memory: the sync loop calls it. Written persists it.
func (m *Memory) update(p *v1.Pod, change func(State) (State, error)) error {
	m.deps.Requests.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := change(m.state)
	if err != nil {
		m.deps.Errors.Inc()
		return err
	}
	if len(next.Containers[p.UID]) != len(m.state.Containers[p.UID]) {
		m.file.Changed()
	}
	m.state = next
	return nil
}

// Release implements numa.Provider. Written persists it; if the agent ends before, the next one releases the memory
// of removed pods again.
func (m *Memory) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.state.Containers[uid]) == 0 {
		return
	}
	m.state = m.state.withoutPod(uid)
	m.file.Changed()
}

// Pods returns the pods that have allocations.
func (m *Memory) Pods() []types.UID {
	var all []types.UID
	for uid := range m.snapshot().Containers {
		all = append(all, uid)
	}
	return all
}

// NUMANodes returns the list of NUMA nodes of the container's memory; empty if it is not restricted.
func (m *Memory) NUMANodes(uid types.UID, container string) string {
	var nodes numa.Nodes
	for _, b := range m.snapshot().Containers[uid][container] {
		for _, id := range b.NUMAAffinity {
			nodes |= 1 << id
		}
	}
	var list []string
	for _, id := range nodes.List() {
		list = append(list, strconv.Itoa(id))
	}
	return strings.Join(list, ",")
}
