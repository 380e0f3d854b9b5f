package cpu

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/statefile"
)

// load reads what an earlier agent gave out. A file that cannot be used is set aside and
// said so: a node that does not start helps nobody.
func (c *CPUs) load() (State, error) {
	raw, err := os.ReadFile(c.cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{Shared: c.rules.pool()}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read the CPU state: %w", err)
	}
	policy, s, err := decode(raw)
	switch {
	case err != nil:
		return c.rebuild(err)
	case policy != Static: // nothing was given then
		c.deps.Log.Info("CPU manager policy changed", "from", policy, "to", Static)
		return State{Shared: c.rules.pool()}, nil
	}
	return c.reconcile(s), nil
}

// rebuild does without the file: what containers run on tells what they were given.
func (c *CPUs) rebuild(because error) (State, error) {
	moved, err := statefile.SetAside(c.cfg.Path, ".bad")
	if err != nil {
		return State{}, fmt.Errorf("%w (%w)", err, because)
	}
	running, err := c.deps.Running()
	if err != nil {
		return State{}, fmt.Errorf("find out which CPUs containers run on, because %w: %w", because, err)
	}
	s := c.reconcile(State{Given: c.exclusive(running)})
	c.tell("InvalidCPUManagerState", "%s: %v; it is kept as %s, and CPU %s of running containers was found again",
		c.cfg.Path, because, moved, s.taken())
	return s, nil
}

// exclusive picks the containers that have CPUs which no container of another pod runs on.
// Containers of one pod may share: an init container's CPUs are used again.
func (c *CPUs) exclusive(running []Running) map[types.UID]map[string]cpuset.CPUSet {
	given := map[types.UID]map[string]cpuset.CPUSet{}
	for _, x := range running {
		lone := !x.CPUs.IsEmpty() && x.CPUs.Intersection(c.rules.reserved).IsEmpty() && !slices.ContainsFunc(running, func(y Running) bool {
			return y.UID != x.UID && (y.CPUs.IsEmpty() || !y.CPUs.Intersection(x.CPUs).IsEmpty())
		})
		if lone {
			if given[x.UID] == nil {
				given[x.UID] = map[string]cpuset.CPUSet{}
			}
			given[x.UID][x.Container] = x.CPUs
		}
	}
	return given
}

// reconcile fits what was given to the machine as it is now. CPUs may have come and gone,
// and other ones may be reserved.
func (c *CPUs) reconcile(s State) State {
	all := c.rules.machine.All()
	for _, uid := range slices.Sorted(maps.Keys(s.Given)) {
		if gone := s.of(uid).Difference(all); !gone.IsEmpty() {
			c.tell("CPUManagerStateChanged", "pod %s had CPU %s, which is gone", uid, gone)
			s = s.without(uid)
		}
	}
	if held := s.taken().Intersection(c.rules.reserved); !held.IsEmpty() {
		c.tell("CPUManagerStateChanged", "CPU %s is now reserved but still given to a container, until that ends", held)
	}
	s.Shared = c.rules.pool().Difference(s.taken())
	return s
}
