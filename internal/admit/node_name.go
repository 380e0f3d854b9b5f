package admit

import v1 "k8s.io/api/core/v1"

// nodeName requires that the pod's node name is empty or that of this node.
func nodeName(p *v1.Pod, node *v1.Node, _ []*v1.Pod) *mismatch {
	if p.Spec.NodeName == "" || p.Spec.NodeName == node.Name {
		return nil
	}
	return &mismatch{"NodeName", "node(s) didn't match the requested node name"}
}
