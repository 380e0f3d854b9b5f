package cpu

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"swiftlet/internal/resource/statefile"
)

// load reads the state file. It moves a corrupt one aside and records an event: the node must
// start.
func (c *CPUs) load() (State, error) {
	policy, s, err := format.Read(c.cfg.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{Shared: c.policy.sharedPool()}, nil
	case errors.Is(err, statefile.ErrCorrupt):
		return c.rebuildFromRuntime(err)
	case err != nil:
		return State{}, err
	case policy != Static: // without allocations
		c.deps.Log.Info("CPU manager: policy changed", "from", policy, "to", Static)
		return State{Shared: c.policy.sharedPool()}, nil
	}
	return c.reconcile(s), nil
}

// format is the format of the state file.
var format = statefile.Format[State]{Owner: "CPU manager", Decode: decode}

// CheckStateFile returns an error if a state file exists and cannot be used. It changes nothing.
func CheckStateFile(path string) error { return format.Check(path) }

// rebuildFromRuntime restores the allocations from the CPU affinity of running containers.
func (c *CPUs) rebuildFromRuntime(cause error) (State, error) {
	aside, err := statefile.SetAside(c.cfg.Path, ".bad")
	if err != nil {
		return State{}, fmt.Errorf("%w (%w)", err, cause)
	}
	running, err := c.deps.Running()
	if err != nil {
		return State{}, fmt.Errorf("list CPUs of running containers (after: %w): %w", cause, err)
	}
	s := c.reconcile(State{Containers: c.findExclusive(running)})
	c.warn("InvalidCPUManagerState", "%s: %v; it is kept as %s, and CPU %s of running containers was found again",
		c.cfg.Path, cause, aside, s.allocated())
	return s, nil
}

// findExclusive returns the containers whose CPUs no container of another pod uses. Containers
// of one pod may share: an init container's CPUs are reused.
func (c *CPUs) findExclusive(running []Running) map[types.UID]map[string]cpuset.CPUSet {
	containers := map[types.UID]map[string]cpuset.CPUSet{}
	for _, x := range running {
		isExclusive := !x.CPUs.IsEmpty() && x.CPUs.Intersection(c.policy.reserved).IsEmpty() && !slices.ContainsFunc(running, func(y Running) bool {
			return y.UID != x.UID && (y.CPUs.IsEmpty() || !y.CPUs.Intersection(x.CPUs).IsEmpty())
		})
		if isExclusive {
			if containers[x.UID] == nil {
				containers[x.UID] = map[string]cpuset.CPUSet{}
			}
			containers[x.UID][x.Container] = x.CPUs
		}
	}
	return containers
}

// reconcile adapts the restored state to the machine: CPUs may be gone, new or reserved now.
func (c *CPUs) reconcile(s State) State {
	all := c.policy.machine.All()
	for _, uid := range slices.Sorted(maps.Keys(s.Containers)) {
		if missing := s.ofPod(uid).Difference(all); !missing.IsEmpty() {
			c.warn("CPUManagerStateChanged", "pod %s had CPU %s, which is gone", uid, missing)
			s = s.withoutPod(uid)
		}
	}
	if conflicting := s.allocated().Intersection(c.policy.reserved); !conflicting.IsEmpty() {
		c.warn("CPUManagerStateChanged", "CPU %s is now reserved but still given to a container, until that ends", conflicting)
	}
	s.Shared = c.policy.sharedPool().Difference(s.allocated())
	return s
}
