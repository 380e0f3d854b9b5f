package admit

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// Pressure rejects pods that would make a shortage worse. conditions are the pressure
// conditions that hold now. Critical pods always pass; under memory pressure alone, so do
// pods that have requested their memory and those that tolerate it.
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
