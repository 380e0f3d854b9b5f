package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/resource/numa"
	"swiftlet/internal/resource/statefile"
	"swiftlet/internal/resource/topology"
)

// The policies.
const (
	None   = "None"
	Static = "Static"
)

// Config says what may be given.
type Config struct {
	Policy  string
	Machine *topology.Machine
	// Reserved is what is kept of each NUMA node; its sums must be Reservation's.
	Reserved map[int]v1.ResourceList
	// Reservation is what the node keeps from pods in all.
	Reservation v1.ResourceList
	// PodLevel has memory that a pod asks for as a whole given to it as a whole.
	PodLevel bool
	// Path is the state file.
	Path string
}

// Deps are what Memory works with.
type Deps struct {
	// Tell has the administrator see what happened to the state.
	Tell             func(reason, message string)
	Requests, Errors meter.Count
	Log              *slog.Logger
}

// Memory gives out memory. It is safe for concurrent use.
type Memory struct {
	cfg   Config
	deps  Deps
	rules rules

	mu    sync.Mutex
	state State
}

// New reads what was given by an earlier agent. It starts nothing.
func New(cfg Config, deps Deps) (*Memory, error) {
	if err := require.Set("make memory manager", map[string]any{
		"Machine": cfg.Machine, "Tell": deps.Tell, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.Path) {
		return nil, errors.New("make memory manager: Path must be an absolute path")
	}
	m := &Memory{cfg: cfg, deps: deps, rules: rules{cfg.PodLevel}}
	switch cfg.Policy {
	case None:
		return m, nil
	case Static:
	default:
		return nil, fmt.Errorf("memoryManagerPolicy: there is no policy %q", cfg.Policy)
	}
	fresh, err := m.fresh()
	if err != nil {
		return nil, err
	}
	if m.state, err = m.load(fresh); err != nil {
		return nil, err
	}
	return m, m.write(m.state)
}

// fresh is the machine with nothing given.
func (m *Memory) fresh() (State, error) {
	if err := m.checkReserved(); err != nil {
		return State{}, err
	}
	s := State{Nodes: map[int]*NodeState{}, Given: map[types.UID]map[string][]Block{}, Pods: map[types.UID][]Block{}}
	for _, n := range m.cfg.Machine.Nodes {
		if _, err := numa.Of(n.ID); err != nil {
			return s, err
		}
		node := &NodeState{MemoryMap: map[v1.ResourceName]*Table{}, Cells: []int{n.ID}}
		left := n.Memory
		for size, pages := range n.HugePages {
			kind := v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(int64(size), resource.BinarySI).String())
			node.MemoryMap[kind] = m.table(n.ID, kind, size*pages, size*pages)
			left -= min(left, size*pages)
		}
		node.MemoryMap[v1.ResourceMemory] = m.table(n.ID, v1.ResourceMemory, n.Memory, left)
		s.Nodes[n.ID] = node
	}
	return s, nil
}

func (m *Memory) table(node int, kind v1.ResourceName, total, left uint64) *Table {
	amount := m.cfg.Reserved[node][kind]
	reserved := uint64(max(amount.Value(), 0))
	free := left - min(left, reserved)
	return &Table{TotalMemSize: total, SystemReserved: reserved, Allocatable: free, Free: free}
}

// checkReserved: what is kept of the nodes is what is kept in all.
func (m *Memory) checkReserved() error {
	sums := v1.ResourceList{}
	for id, list := range m.cfg.Reserved {
		if !slices.ContainsFunc(m.cfg.Machine.Nodes, func(n topology.Node) bool { return n.ID == id }) {
			return fmt.Errorf("reservedMemory: the machine has no NUMA node %d", id)
		}
		for kind, amount := range list {
			sum := sums[kind]
			sum.Add(amount)
			sums[kind] = sum
		}
	}
	if amount := sums[v1.ResourceMemory]; amount.Sign() <= 0 {
		return errors.New("memoryManagerPolicy Static: reservedMemory must keep memory of some NUMA node")
	}
	for _, lists := range [][2]v1.ResourceList{{sums, m.cfg.Reservation}, {m.cfg.Reservation, sums}} {
		for kind := range lists[0] {
			if kind != v1.ResourceMemory && !strings.HasPrefix(string(kind), v1.ResourceHugePagesPrefix) {
				continue
			}
			if sum, kept := sums[kind], m.cfg.Reservation[kind]; !sum.Equal(kept) {
				return fmt.Errorf("reservedMemory: the NUMA nodes keep %s of %s, but kubeReserved, systemReserved and evictionHard keep %s",
					sum.String(), kind, kept.String())
			}
		}
	}
	return nil
}

// load reads what an earlier agent gave out. A file that cannot be used is set aside and
// said so; pods are given memory anew when they are admitted again.
func (m *Memory) load(fresh State) (State, error) {
	raw, err := os.ReadFile(m.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read the memory state: %w", err)
	}
	policy, s, err := decode(raw)
	switch {
	case err != nil:
		moved, asideErr := statefile.SetAside(m.cfg.Path, ".bad")
		m.tell("InvalidMemoryManagerState", "%s: %v; it is kept as %s", m.cfg.Path, err, moved)
		return fresh, asideErr
	case policy != Static: // nothing was given then
		return fresh, nil
	}
	now, lost := s.onto(fresh)
	for _, uid := range lost {
		m.tell("MemoryManagerStateChanged", "pod %s had memory of a NUMA node that is gone", uid)
	}
	if len(lost) == 0 && !same(s, now) {
		m.deps.Log.Info("the machine's memory, or what is reserved of it, has changed")
	}
	return now, nil
}

func (m *Memory) tell(reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	m.deps.Log.Warn("memory state", "reason", reason, "message", message)
	m.deps.Tell(reason, message)
}

func (m *Memory) write(s State) error {
	raw, err := encode(s)
	if err == nil {
		err = checkpoint.Replace(m.cfg.Path, raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the memory state: %w", err)
	}
	return nil
}

func (m *Memory) now() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Hints implements numa.Provider.
func (m *Memory) Hints(p *v1.Pod, c *v1.Container) numa.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	s := m.now()
	if blocks, has := s.Given[p.UID][c.Name]; has {
		return hintsOf(blocks)
	}
	return s.hintsFor(p, m.rules.wants(p, c))
}

// PodHints implements numa.Provider.
func (m *Memory) PodHints(p *v1.Pod) numa.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	s := m.now()
	if asWhole(p) {
		return m.rules.wholePodHints(s, p)
	}
	for c := range pod.Containers(p) {
		if blocks, has := s.Given[p.UID][c.Name]; has {
			return hintsOf(blocks)
		}
	}
	return s.hintsFor(p, m.rules.podWants(p))
}

// Allocate implements numa.Provider.
func (m *Memory) Allocate(_ context.Context, p *v1.Pod, c *v1.Container, where numa.Hint) error {
	want := m.rules.wants(p, c)
	if m.cfg.Policy != Static || len(want) == 0 {
		return nil
	}
	return m.give(p, func(s State) (State, error) { return s.allocate(p, c, want, where) })
}

// AllocatePod implements numa.PodProvider.
func (m *Memory) AllocatePod(_ context.Context, p *v1.Pod, where numa.Hint) error {
	if m.cfg.Policy != Static || len(m.rules.podWants(p)) == 0 {
		return nil
	}
	return m.give(p, func(s State) (State, error) { return m.rules.allocatePod(s, p, where) })
}

// give makes a change, once it is written down.
func (m *Memory) give(p *v1.Pod, change func(State) (State, error)) error {
	m.deps.Requests.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := change(m.state)
	if err == nil && len(next.Given[p.UID]) != len(m.state.Given[p.UID]) {
		err = m.write(next)
	}
	if err != nil {
		m.deps.Errors.Inc()
		return err
	}
	m.state = next
	return nil
}

// Release implements numa.Provider.
func (m *Memory) Release(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.state.Given[uid]) == 0 {
		return
	}
	m.state = m.state.without(uid)
	if err := m.write(m.state); err != nil { // housekeeping of the next agent would find it
		m.deps.Log.Error("the end of a pod's memory could not be written down", "pod", uid, "err", err)
	}
}

// Pods are those that have memory of their own.
func (m *Memory) Pods() []types.UID {
	var all []types.UID
	for uid := range m.now().Given {
		all = append(all, uid)
	}
	return all
}

// Of lists the NUMA nodes that the container's memory comes from; empty if from any.
func (m *Memory) Of(uid types.UID, container string) string {
	var nodes numa.Nodes
	for _, b := range m.now().Given[uid][container] {
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
