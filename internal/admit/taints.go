package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
)

// taints requires that the pod tolerates the NoExecute taints of the node. Static pods run
// regardless of taints.
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
