package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// affinity: the node's labels suit the pod's selector and required affinity. A term that
// cannot be parsed suits nothing.
func affinity(p *v1.Pod, node *v1.Node, _ []*v1.Pod) *mismatch {
	if ok, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(node); ok {
		return nil
	}
	return &mismatch{"NodeAffinity", "node(s) didn't match Pod's node affinity/selector"}
}
