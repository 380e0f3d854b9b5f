package node

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

const cgroupV1Warning = "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. " +
	"Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"

// event is an event about the node.
type event struct{ kind, reason, message string }

// ObjectRef refers to the Node. It has the UID once the Node is registered.
func (s *State) ObjectRef() *v1.ObjectReference {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.cfg.NodeName}
	if s.current != nil {
		ref.UID = s.current.UID
	}
	return ref
}

// recordEvents sends events about the node to the API server.
func (n *Node) recordEvents(events ...event) {
	for _, e := range events {
		n.deps.Events.Eventf(n.ObjectRef(), e.kind, e.reason, "%s", e.message)
	}
}

// statusEvents returns the events for the difference between two statuses.
func statusEvents(name string, old, current *v1.Node) []event {
	var all []event
	add := func(reason string) {
		all = append(all, event{v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", name, reason)})
	}
	statusOf := func(node *v1.Node, kind v1.NodeConditionType) v1.ConditionStatus {
		if c := condition(&node.Status, kind); c != nil {
			return c.Status
		}
		return v1.ConditionUnknown
	}
	for _, kind := range pressures {
		switch status := statusOf(current, kind.kind); {
		case status == statusOf(old, kind.kind):
		case status == v1.ConditionTrue:
			add(kind.badEvent)
		case status == v1.ConditionFalse:
			add(kind.goodEvent)
		}
	}
	before := old.Status.NodeInfo.BootID
	if boot := current.Status.NodeInfo.BootID; before != "" && boot != before {
		all = append(all, event{v1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", name, boot)})
	}
	switch ready := statusOf(current, v1.NodeReady); {
	case ready == statusOf(old, v1.NodeReady):
	case ready == v1.ConditionTrue:
		add("NodeReady")
	case ready == v1.ConditionFalse && condition(&old.Status, v1.NodeReady) != nil:
		add("NodeNotReady") // not for a new node, which was never ready
	}
	return all
}
