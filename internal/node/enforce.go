package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// enforceRetry: lowering a limit below what is in use succeeds once eviction has done its
// work, which takes its time.
const enforceRetry = time.Minute

// Reservation is a group of the system that is held to what is kept for it.
type Reservation struct {
	Name    string // as events call it
	Group   string
	Amounts v1.ResourceList
	// Compressible leaves out what a process can run out of: only CPU is enforced.
	Compressible bool
}

// enforceReserved bounds the groups of the system. They are there or not: trying again would
// not help, and a node that divides its machine otherwise than it was told must not run.
func (n *Node) enforceReserved() error {
	for _, r := range n.cfg.Reservations {
		name, amounts := r.Name, r.Amounts
		if r.Compressible {
			name, amounts = name+" Compressible", only(v1.ResourceCPU, amounts)
		}
		if err := n.deps.EnforceReserved(r.Group, amounts); err != nil {
			n.tell(event{v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
				fmt.Sprintf("Failed to enforce %s Cgroup Limits on %q: %v", name, r.Group, err)})
			return fmt.Errorf("enforce what is reserved (enforceNodeAllocatable): %w", err)
		}
		n.tell(event{v1.EventTypeNormal, "NodeAllocatableEnforced",
			fmt.Sprintf("Updated limits on %s cgroup %s", strings.ToLower(r.Name), r.Group)})
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

// enforce bounds all pods together, until that has succeeded once.
func (n *Node) enforce(ctx context.Context) {
	if n.deps.Enforce == nil {
		return
	}
	for {
		err := n.deps.Enforce(n.CgroupLimits())
		if err == nil {
			n.tell(event{v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"})
			return
		}
		n.log.Error("pods are not bounded to the node's allocatable resources, will retry", "in", enforceRetry, "err", err)
		n.tell(event{v1.EventTypeWarning, "FailedNodeAllocatableEnforcement",
			fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", "kubepods", err)})
		if !n.sleep(ctx, enforceRetry, nil) {
			return
		}
	}
}
