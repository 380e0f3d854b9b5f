package node

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// report works out the status and sends it if it changed or a report is due.
func (n *Node) report(ctx context.Context) error {
	known := n.refresh()
	n.reportAddresses(known)
	n.spread(ctx, known)
	next := known.DeepCopy()
	n.fill(ctx, next)
	changed := differs(known, next)
	if !changed && n.deps.Clock.Now().Before(n.reportDue) {
		n.volumesReported(known)
		return nil
	}
	if n.deps.Client == nil {
		n.accept(known, next, changed)
		return nil
	}
	updated, err := n.patch(ctx, known, next)
	if err != nil {
		return err
	}
	n.accept(known, updated, changed)
	return nil
}

// accept takes note of what the API server now has, and tells of the difference.
func (n *Node) accept(old, current *v1.Node, changed bool) {
	n.setCurrent(current)
	n.reportDue = n.deps.Clock.Now().Add(n.cfg.StatusReportFrequency)
	if changed && n.deps.Jitter != nil {
		// Nodes that changed at the same moment (an outage) must not go on in step.
		spread := float64(n.cfg.StatusReportFrequency) * (n.deps.Jitter() - 0.5)
		n.reportDue = n.reportDue.Add(time.Duration(spread))
	}
	if saysReady(current) {
		n.deps.Meters.Ready.Inc()
	}
	n.tell(changes(n.cfg.NodeName, old, current)...)
	n.volumesReported(current)
}

func saysReady(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

func (n *Node) volumesReported(node *v1.Node) {
	if n.deps.VolumesReported != nil {
		n.deps.VolumesReported(node.Status.VolumesInUse)
	}
}

// refresh gives the Node as the API server has it, as far as we know: our own last write,
// or what the watch has seen since.
func (n *Node) refresh() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil {
		return n.blank()
	}
	if n.deps.Watched == nil {
		return n.current
	}
	relisted := n.relisted.Swap(false)
	seen, err := n.deps.Watched()
	if err != nil || !relisted && !newer(seen.ResourceVersion, n.current.ResourceVersion) {
		return n.current
	}
	merged := seen.DeepCopy()
	if merged.Status.Images == nil && seen.UID == n.current.UID {
		merged.Status.Images = n.current.Status.Images // the watch leaves them out
	}
	n.current = merged
	return merged
}

// newer compares resource versions of one object, which count upwards within one watch.
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}

// spread passes on what the control plane has decided about the node.
func (n *Node) spread(ctx context.Context, node *v1.Node) {
	if node.Spec.Unschedulable != n.cordoned {
		n.cordoned = node.Spec.Unschedulable
		reason := "NodeSchedulable"
		if n.cordoned {
			reason = "NodeNotSchedulable"
		}
		n.tell(event{v1.EventTypeNormal, reason, "Node " + n.cfg.NodeName + " status is now: " + reason})
	}
	cidr := strings.Join(node.Spec.PodCIDRs, ",")
	if n.deps.PodCIDR == nil || cidr == "" || cidr == n.podCIDR {
		return
	}
	if err := n.deps.PodCIDR(ctx, cidr); err != nil {
		n.log.Error("the pod network was not passed on, will retry", "cidr", cidr, "err", err)
		return
	}
	n.podCIDR = cidr
}
