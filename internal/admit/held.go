package admit

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// readTimeout bounds how long a pod waits for a read of the Node.
const readTimeout = 5 * time.Second

// held are changes that cannot be decided on before the Node is read: their pods do not
// match its labels as the watch showed them, which may be older than those that the scheduler
// saw. Each is the latest change of its pod.
type held struct {
	underWay bool         // a read of the Node
	reading  []pod.Change // wait for that read
	next     []pod.Change // came after it had begun, and wait for another
}

// Run reads the Node for held pods, until ctx ends.
func (a *Admission) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.reads:
		}
		select {
		case <-ctx.Done():
			return nil
		case a.read <- a.readNode(ctx):
		}
	}
}

// readNode is nil where the Node cannot be read.
func (a *Admission) readNode(ctx context.Context) *v1.Node {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	node, err := a.deps.Node.deps.Read(ctx)
	if err != nil {
		a.deps.Log.Warn("failed to read the node, deciding by the watched one", "err", err)
		return nil
	}
	return node
}

// NodeRead yields the Node, nil where it could not be read, for Resume.
func (a *Admission) NodeRead() <-chan *v1.Node { return a.read }

// Resume decides on the changes that waited for a read of the Node, and returns them.
func (a *Admission) Resume(node *v1.Node, handle Handle) []pod.Change {
	changes := a.held.reading
	a.held.reading, a.held.underWay = nil, false
	a.deps.Node.fresh = node
	a.decide(changes, func(pod.Change) bool { return false }, handle)
	a.deps.Node.fresh = nil
	a.startRead()
	return changes
}

// startRead begins to read the Node if changes wait for that and no read is under way.
func (a *Admission) startRead() {
	if len(a.held.next) == 0 || a.held.underWay {
		return
	}
	a.held.reading, a.held.next, a.held.underWay = a.held.next, nil, true
	a.reads <- struct{}{}
}

// hold keeps a change back if it takes a read of the Node to decide on it, and reports
// whether it does. A later change of a held pod takes the place of the earlier one, except
// that the end of the pod waits for nothing.
func (a *Admission) hold(c pod.Change) bool {
	if a.deps.Node == nil || a.deps.Node.deps.Read == nil {
		return false
	}
	if was := a.held.find(c.Pod.UID); was != nil {
		if c.Op == pod.Remove || c.Pod.DeletionTimestamp != nil {
			a.held.drop(c.Pod.UID)
			return false
		}
		c.Op = was.Op
		*was = c
		return true
	}
	if !a.undecided(c) {
		return false
	}
	a.deps.Log.Info("holding a pod until the node was read", "pod", pod.RefOf(c.Pod).String())
	a.held.next = append(a.held.next, c)
	return true
}

// undecided reports a new pod or a resize that does not match the labels of the Node, and a
// new pod that has no room beside the pods held before it.
func (a *Admission) undecided(c pod.Change) bool {
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
	before := a.heldPods()
	if !isNew || len(before) == 0 {
		return false
	}
	others := append(a.active(), before...)
	return len(shortages(p, node, others)) > 0 || hostPorts(p, node, others) != nil
}

// heldPods are the new pods that are held, with their allocated resources.
func (a *Admission) heldPods() []*v1.Pod {
	var all []*v1.Pod
	for _, c := range slices.Concat(a.held.reading, a.held.next) {
		if c.Op == pod.Add {
			p, _ := a.deps.Allocator.Allocated(c.Pod)
			all = append(all, p)
		}
	}
	return all
}

func (h *held) find(uid types.UID) *pod.Change {
	for _, list := range [][]pod.Change{h.reading, h.next} {
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
	h.reading, h.next = slices.DeleteFunc(h.reading, is), slices.DeleteFunc(h.next, is)
}
