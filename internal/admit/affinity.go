package admit

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// affinity requires that the node's labels match the pod's node selector and required node
// affinity. A term that cannot be parsed does not match.
func affinity(p *v1.Pod, node *v1.Node, _ []*v1.Pod) *mismatch {
	if ok, _ := nodeaffinity.GetRequiredNodeAffinity(p).Match(node); ok {
		return nil
	}
	return &mismatch{"NodeAffinity", "node(s) didn't match Pod's node affinity/selector"}
}
