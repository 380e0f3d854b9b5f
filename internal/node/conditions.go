package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// pressures has the reasons, messages and events of the three pressure conditions.
var pressures = []struct {
	kind                v1.NodeConditionType
	bad, good           string // reasons
	badText, goodText   string
	badEvent, goodEvent string
}{
	{v1.NodeMemoryPressure,
		"KubeletHasInsufficientMemory", "KubeletHasSufficientMemory",
		"kubelet has insufficient memory available", "kubelet has sufficient memory available",
		"NodeHasInsufficientMemory", "NodeHasSufficientMemory"},
	{v1.NodeDiskPressure,
		"KubeletHasDiskPressure", "KubeletHasNoDiskPressure",
		"kubelet has disk pressure", "kubelet has no disk pressure",
		"NodeHasDiskPressure", "NodeHasNoDiskPressure"},
	{v1.NodePIDPressure,
		"KubeletHasInsufficientPID", "KubeletHasSufficientPID",
		"kubelet has insufficient PID available", "kubelet has sufficient PID available",
		"NodeHasInsufficientPID", "NodeHasSufficientPID"},
}

func (n *Node) fillPressure(_ context.Context, node *v1.Node) error {
	var present []v1.NodeConditionType
	if n.deps.Pressures != nil {
		present = n.deps.Pressures()
	}
	for _, kind := range pressures {
		c := v1.NodeCondition{Type: kind.kind, Status: v1.ConditionFalse, Reason: kind.good, Message: kind.goodText}
		if slices.Contains(present, kind.kind) {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, kind.bad, kind.badText
		}
		setCondition(&node.Status, c, n.deps.Clock.Now())
	}
	return nil
}

func (n *Node) fillReady(_ context.Context, node *v1.Node) error {
	c := v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionTrue,
		Reason: "KubeletReady", Message: "kubelet is posting ready status",
	}
	if err := n.notReady(node.Status.Capacity); err != nil {
		c.Status, c.Reason, c.Message = v1.ConditionFalse, "KubeletNotReady", err.Error()
	}
	setCondition(&node.Status, c, n.deps.Clock.Now())
	return nil
}

// notReady returns all reasons not to be ready; two or more are formatted as "[one, two]".
func (n *Node) notReady(capacity v1.ResourceList) error {
	reasons := []error{n.runtime.down(n.deps.Clock.Now())}
	if n.deps.PLEGHealthy != nil {
		if err := n.deps.PLEGHealthy(); err != nil {
			reasons = append(reasons, fmt.Errorf("PLEG is not healthy: %w", err))
		}
	}
	reasons = append(reasons, n.runtime.notReady(), n.runtime.networkNotReady())
	for _, reason := range n.deps.ReadyChecks {
		reasons = append(reasons, reason())
	}
	reasons = append(reasons, missingCapacity(capacity, n.cfg.RootDir != ""))
	// NewAggregate drops nils, and is nil if nothing is left.
	if err := utilerrors.NewAggregate(reasons); err != nil {
		return err
	}
	return nil
}

func missingCapacity(capacity v1.ResourceList, disk bool) error {
	required := []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods}
	if disk {
		required = append(required, v1.ResourceEphemeralStorage)
	}
	var names []string
	for _, name := range required {
		if _, ok := capacity[name]; !ok {
			names = append(names, string(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return errors.New("missing node capacity for resources: " + strings.Join(names, ", "))
}

// setCondition replaces the condition of c's type, or appends c. It changes the transition
// time only if the status changes, and always sets the heartbeat time.
func setCondition(status *v1.NodeStatus, c v1.NodeCondition, now time.Time) {
	c.LastHeartbeatTime = metav1.NewTime(now)
	c.LastTransitionTime = c.LastHeartbeatTime
	if old := condition(status, c.Type); old != nil {
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		*old = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}

func condition(status *v1.NodeStatus, kind v1.NodeConditionType) *v1.NodeCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}
