package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// taints: the pod tolerates those taints of the node that would end it at once. Static
// pods are not the control plane's to keep away.
func taints(p *v1.Pod, node *v1.Node, _ []*v1.Pod) *mismatch {
	if pod.IsStatic(p) {
		return nil
	}
	noExecute := func(t *v1.Taint) bool { return t.Effect == v1.TaintEffectNoExecute }
	if _, found := corev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, p.Spec.Tolerations, noExecute, false); !found {
		return nil
	}
	return &mismatch{"TaintToleration", "node(s) had taints that the pod didn't tolerate"}
}
