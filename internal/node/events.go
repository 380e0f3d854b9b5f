package node

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

const cgroupV1Warning = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. " +
	"Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"

// event is one thing to tell about the node.
type event struct{ kind, reason, message string }

// ref is the object of events about the node, with the UID once that is known.
func (s *State) ref() *v1.ObjectReference {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.cfg.NodeName}
	if s.current != nil {
		ref.UID = s.current.UID
	}
	return ref
}

func (n *Node) tell(events ...event) {
	for _, e := range events {
		n.deps.Events.Eventf(n.ref(), e.kind, e.reason, "%s", e.message)
	}
}

// changes tells what became different for those who watch the node's events.
func changes(name string, old, current *v1.Node) []event {
	var all []event
	now := func(reason string) {
		all = append(all, event{v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason)})
	}
	is := func(node *v1.Node, kind v1.NodeConditionType) v1.ConditionStatus {
		if c := condition(&node.Status, kind); c != nil {
			return c.Status
		}
		return v1.ConditionUnknown
	}
	for _, kind := range pressures {
		switch status := is(current, kind.kind); {
		case status == is(old, kind.kind):
		case status == v1.ConditionTrue:
			now(kind.badEvent)
		case status == v1.ConditionFalse:
			now(kind.goodEvent)
		}
	}
	before := old.Status.NodeInfo.BootID
	if boot := current.Status.NodeInfo.BootID; before != "" && boot != before {
		all = append(all, event{v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, boot)})
	}
	switch ready := is(current, v1.NodeReady); {
	case ready == is(old, v1.NodeReady):
	case ready == v1.ConditionTrue:
		now("NodeReady")
	case ready == v1.ConditionFalse && condition(&old.Status, v1.NodeReady) != nil:
		now("NodeNotReady") // a new node was never ready
	}
	return all
}
