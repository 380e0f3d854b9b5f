package node

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// enforceRetry: lowering a limit below what is in use succeeds once eviction has done its
// work, which takes its time.
const enforceRetry = time.Minute

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
		if !n.sleep(ctx, enforceRetry, false) {
			return
		}
	}
}
