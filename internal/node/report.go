package node

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// report computes the status and sends it if it changed or a report is due.
func (n *Node) report(ctx context.Context) error {
	known := n.refresh()
	n.reportAddresses(known)
	n.handleSpec(ctx, known)
	next := known.DeepCopy()
	n.fill(ctx, next)
	changed := differs(known, next)
	if !changed && n.deps.Clock.Now().Before(n.reportDue) {
		n.volumesReported(known)
		return nil
	}
	if n.deps.Client == nil {
		n.setReported(known, next, changed)
		return nil
	}
	updated, err := n.patch(ctx, known, next)
	if err != nil {
		return err
	}
	n.setReported(known, updated, changed)
	return nil
}

// setReported records the Node that the API server has now, and sends events for the
// difference.
func (n *Node) setReported(old, current *v1.Node, changed bool) {
	n.setCurrent(current)
	n.reportDue = n.deps.Clock.Now().Add(n.cfg.StatusReportFrequency)
	if changed && n.deps.Jitter != nil {
		// Spread the next reports of nodes that changed at the same time, as after an outage.
		jitter := float64(n.cfg.StatusReportFrequency) * (n.deps.Jitter() - 0.5)
		n.reportDue = n.reportDue.Add(time.Duration(jitter))
	}
	if reportsReady(current) {
		n.deps.Meters.Ready.Inc()
	}
	n.recordEvents(statusEvents(n.cfg.NodeName, old, current)...)
	n.volumesReported(current)
}

func reportsReady(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}

func (n *Node) volumesReported(node *v1.Node) {
	if n.deps.VolumesReported != nil {
		n.deps.VolumesReported(node.Status.VolumesInUse)
	}
}

// refresh returns the Node that the API server has, as far as is known: the result of the
// last write, or a newer one from the informer.
func (n *Node) refresh() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current == nil {
		return n.initialNode()
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
		merged.Status.Images = n.current.Status.Images // the informer drops them
	}
	n.current = merged
	return merged
}

// newer compares two resource versions of one object.
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	if errX != nil || errY != nil {
		return a != b
	}
	return x > y
}

// handleSpec acts on changes of the Node's spec: it records cordoning as an event, and passes
// the pod CIDR to the container runtime.
func (n *Node) handleSpec(ctx context.Context, node *v1.Node) {
	if node.Spec.Unschedulable != n.cordoned {
		n.cordoned = node.Spec.Unschedulable
		reason := "NodeSchedulable"
		if n.cordoned {
			reason = "NodeNotSchedulable"
		}
		n.recordEvents(event{v1.EventTypeNormal, reason, "Node " + n.cfg.NodeName + " status is now: " + reason})
	}
	cidr := strings.Join(node.Spec.PodCIDRs, ",")
	if n.deps.SetPodCIDR == nil || cidr == "" || cidr == n.podCIDR {
		return
	}
	if err := n.deps.SetPodCIDR(ctx, cidr); err != nil {
		n.log.Error("node: failed to pass pod CIDR to the container runtime, will retry", "cidr", cidr, "err", err)
		return
	}
	n.podCIDR = cidr
}
