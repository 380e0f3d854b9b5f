package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// enforceRetry is the delay after a failure. The kernel rejects a limit below current usage
// until eviction has reclaimed enough, which takes time.
const enforceRetry = time.Minute

// Reservation is a system cgroup that is limited to the resources reserved for it.
type Reservation struct {
	Name    string // in events
	Cgroup  string
	Amounts v1.ResourceList
	// Compressible enforces CPU only, and no resource whose shortage fails a process.
	Compressible bool
}

// enforceReserved limits the system cgroups. It does not retry: a missing cgroup is a
// configuration error, and the kubelet must not run with reservations that it cannot enforce.
func (n *Node) enforceReserved() error {
	for _, r := range n.cfg.Reservations {
		name, amounts := r.Name, r.Amounts
		if r.Compressible {
			name, amounts = name+" Compressible", only(v1.ResourceCPU, amounts)
		}
		if err := n.deps.EnforceReserved(r.Cgroup, amounts); err != nil {
			n.recordEvents(event{v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
				fmt.Sprintf("Failed to enforce %s Cgroup Limits on %q: %v", name, r.Cgroup, err)})
			return fmt.Errorf("enforce reserved resources (enforceNodeAllocatable): %w", err)
		}
		n.recordEvents(event{v1.EventTypeNormal, "NodeAllocatableEnforced",
			fmt.Sprintf("Updated limits on %s cgroup %s", strings.ToLower(r.Name), r.Cgroup)})
	}
	return nil
}

func only(name v1.ResourceName, list v1.ResourceList) v1.ResourceList {
	amount, ok := list[name]
	if !ok {
		return v1.ResourceList{}
	}
	return v1.ResourceList{name: amount}
}

// enforceAllocatable limits the cgroup of all pods. It retries until it succeeds once.
func (n *Node) enforceAllocatable(ctx context.Context) {
	if n.deps.EnforceAllocatable == nil {
		return
	}
	for {
		err := n.deps.EnforceAllocatable(n.CgroupLimits())
		if err == nil {
			n.recordEvents(event{v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"})
			return
		}
		n.log.Error("node: failed to enforce allocatable on the pods cgroup, will retry", "retryIn", enforceRetry, "err", err)
		n.recordEvents(event{v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
			fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", "kubepods", err)})
		if !n.sleep(ctx, enforceRetry, nil) {
			return
		}
	}
}
