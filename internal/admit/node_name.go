package admit

import v1 "k8s.io/api/core/v1"

// nodeName: the pod is meant for this node, or for none in particular.
func nodeName(p *v1.Pod, node *v1.Node, _ []*v1.Pod) *mismatch {
	if p.Spec.NodeName == "" || p.Spec.NodeName == node.Name {
		return nil
	}
	return &mismatch{"NodeName", "node(s) didn't match the requested node name"}
}
