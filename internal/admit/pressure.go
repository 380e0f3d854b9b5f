package admit

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// Pressure rejects pods while the node has pressure conditions. Critical pods always pass. If
// there is memory pressure only, pods that are not best-effort and pods that tolerate its
// taint pass, too.
func Pressure(conditions func() []v1.NodeConditionType) Check {
	return func(p *v1.Pod, _ []*v1.Pod) *pod.Rejection {
		now := conditions()
		if len(now) == 0 || pod.IsCritical(p) {
			return nil
		}
		if slices.Equal(now, []v1.NodeConditionType{v1.NodeMemoryPressure}) {
			taint := &v1.Taint{Key: v1.TaintNodeMemoryPressure, Effect: v1.TaintEffectNoSchedule}
			if pod.QOS(p) != v1.PodQOSBestEffort || corev1.TolerationsTolerateTaint(klog.Background(), p.Spec.Tolerations, taint, false) {
				return nil
			}
		}
		return pod.Reject("Evicted", "The node had condition: %v. ", now)
	}
}
