package admit

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// readTimeout limits how long a pod waits for a read of the Node.
const readTimeout = 5 * time.Second

// held are changes that wait for a read of the Node: their pods do not match the labels of the
// Node in the informer, which may be older than the Node that the scheduler used. Each is the
// latest change of its pod.
type held struct {
	reading bool         // a read is in progress
	current []pod.Change // wait for the read in progress
	next    []pod.Change // came after that read began, and wait for the next one
}

// Run reads the Node for held changes until ctx is done.
func (a *Admission) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.requests:
		}
		select {
		case <-ctx.Done():
			return nil
		case a.results <- a.readNode(ctx):
		}
	}
}

// readNode returns nil if the Node cannot be read.
func (a *Admission) readNode(ctx context.Context) *v1.Node {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	node, err := a.deps.Node.deps.Read(ctx)
	if err != nil {
		a.deps.Log.Warn("admission: failed to read node, using the one from the informer", "err", err)
		return nil
	}
	return node
}

// NodeRead returns the channel of Nodes that were read, for Resume. A nil Node means that the
// read failed.
func (a *Admission) NodeRead() <-chan *v1.Node { return a.results }

// Resume decides on the changes that waited for the read of the Node, and returns them.
func (a *Admission) Resume(node *v1.Node, handle Handle) []pod.Change {
	changes := a.held.current
	a.held.current, a.held.reading = nil, false
	a.deps.Node.fresh = node
	a.decide(changes, func(pod.Change) bool { return false }, handle)
	a.deps.Node.fresh = nil
	a.startRead()
	return changes
}

// startRead requests a read of the Node if changes wait for one and none is in progress.
func (a *Admission) startRead() {
	if len(a.held.next) == 0 || a.held.reading {
		return
	}
	a.held.current, a.held.next, a.held.reading = a.held.next, nil, true
	a.requests <- struct{}{}
}

// hold holds a change if the decision depends on a read of the Node, and reports whether it
// does. A later change of a held pod replaces the earlier one. Deletion and removal of a pod
// are never held.
func (a *Admission) hold(c pod.Change) bool {
	if a.deps.Node == nil || a.deps.Node.deps.Read == nil {
		return false
	}
	if earlier := a.held.find(c.Pod.UID); earlier != nil {
		if c.Op == pod.Remove || c.Pod.DeletionTimestamp != nil {
			a.held.drop(c.Pod.UID)
			return false
		}
		c.Op = earlier.Op
		*earlier = c
		return true
	}
	if !a.dependsOnRead(c) {
		return false
	}
	a.deps.Log.Info("admission: pod waits for a read of the node", pod.RefOf(c.Pod).Attr())
	a.held.next = append(a.held.next, c)
	return true
}

// dependsOnRead reports whether the change is a new pod or a resize that does not match the
// labels of the Node, or a new pod that does not fit if the pods held before it are admitted.
func (a *Admission) dependsOnRead(c pod.Change) bool {
	p, differ := a.deps.Allocator.Allocated(c.Pod)
	isNew := c.Op == pod.Add && !a.deps.Workers.Known(p.UID)
	resizes := c.Op == pod.Update && differ
	if !isNew && !resizes || p.DeletionTimestamp != nil || pod.IsTerminal(p.Status.Phase) {
		return false
	}
	node, err := a.deps.Node.Get()
	if err != nil {
		return false
	}
	if affinity(p, node, nil) != nil {
		return true
	}
	heldPods := a.heldPods()
	if !isNew || len(heldPods) == 0 {
		return false
	}
	others := append(a.active(), heldPods...)
	return len(a.used.findShortages(p, node, others)) > 0 || hostPorts(p, node, others) != nil
}

// heldPods returns the new pods that are held, with their allocated resources.
func (a *Admission) heldPods() []*v1.Pod {
	var all []*v1.Pod
	for _, c := range slices.Concat(a.held.current, a.held.next) {
		if c.Op == pod.Add {
			p, _ := a.deps.Allocator.Allocated(c.Pod)
			all = append(all, p)
		}
	}
	return all
}

func (h *held) find(uid types.UID) *pod.Change {
	for _, list := range [][]pod.Change{h.current, h.next} {
		for i := range list {
			if list[i].Pod.UID == uid {
				return &list[i]
			}
		}
	}
	return nil
}

func (h *held) drop(uid types.UID) {
	is := func(c pod.Change) bool { return c.Pod.UID == uid }
	h.current, h.next = slices.DeleteFunc(h.current, is), slices.DeleteFunc(h.next, is)
}
