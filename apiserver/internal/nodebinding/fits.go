package nodebinding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// fits reports whether a pod fits on the node beside others. It is false also if only a scheduler can say, as it
// keeps pods away for a while, or has to choose volumes or devices. A node without allocatable resources has not
// reported them: the kubelet checks them.
func fits(pod *corev1.Pod, node *corev1.Node, others []*corev1.Pod) bool {
	if needsScheduler(&pod.Spec) || keepsAway(node) {
		return false
	}
	info := framework.NewNodeInfo(others...)
	if len(node.Status.Allocatable) == 0 {
		return true
	}
	info.SetNode(node)
	return len(info.GetPodsWithRequiredAntiAffinity()) == 0 && len(scheduler.AdmissionCheck(pod, info, false)) == 0
}

// needsScheduler reports whether a pod has claims, or constraints about other pods.
func needsScheduler(pod *corev1.PodSpec) bool {
	if len(pod.ResourceClaims) > 0 || pod.SchedulingGroup != nil {
		return true
	}
	if a := pod.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
			a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) ||
		slices.ContainsFunc(pod.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.WhenUnsatisfiable == corev1.DoNotSchedule
		})
}

// keepsAway reports whether there are pods that the node must not get at this time.
func keepsAway(node *corev1.Node) bool {
	return node.Spec.Unschedulable ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }) ||
		slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Status == corev1.ConditionTrue && slices.Contains(pressures, c.Type)
		})
}

// pressures are the conditions under which the kubelet rejects pods.
var pressures = []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

// waits reports whether a pod waits for the node. Pods that have one, that another scheduler binds or whose
// scheduling gates are not cleared do not, nor those for another node.
func waits(pod *corev1.PodSpec, node string) bool {
	return pod.NodeName == "" && len(pod.SchedulingGates) == 0 && pod.SchedulerName == corev1.DefaultSchedulerName && admits(pod.Affinity, node)
}

// admits reports whether an affinity admits the name of the node. The pods of a DaemonSet have one, also for a node
// object that another name of this machine has left.
func admits(affinity *corev1.Affinity, node string) bool {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchFields, func(field corev1.NodeSelectorRequirement) bool {
			named := slices.Contains(field.Values, node)
			return field.Key == metav1.ObjectNameField && named != (field.Operator == corev1.NodeSelectorOpIn)
		})
	})
}
