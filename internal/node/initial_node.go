package node

import (
	"maps"
	"runtime"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Well-known keys that have no constant in the API packages.
const (
	labelBetaOS           = "beta.kubernetes.io/os"
	labelBetaArch         = "beta.kubernetes.io/arch"
	annotationAttach      = "volumes.kubernetes.io/controller-managed-attach-detach"
	annotationProvidedIP  = "alpha.kubernetes.io/provided-node-ip"
	taintUninitialisedKey = "node.cloudprovider.kubernetes.io/uninitialized"
)

// initialNode is the Node as the kubelet first registers it, without status.
func (s *State) initialNode() *v1.Node {
	node := &v1.Node{}
	node.Name = s.cfg.NodeName
	node.Labels = map[string]string{
		v1.LabelHostname:   s.cfg.Hostname,
		v1.LabelOSStable:   runtime.GOOS,
		v1.LabelArchStable: runtime.GOARCH,
		labelBetaOS:        runtime.GOOS,
		labelBetaArch:      runtime.GOARCH,
	}
	maps.Copy(node.Labels, s.cfg.Labels)
	if s.cfg.ControllerManagedAttach {
		node.Annotations = map[string]string{annotationAttach: "true"}
	}
	node.Spec.ProviderID = s.cfg.ProviderID
	node.Spec.Taints = slices.Clone(s.cfg.Taints)
	if s.cfg.ExternalCloud {
		node.Spec.Taints = append(node.Spec.Taints,
			v1.Taint{Key: taintUninitialisedKey, Value: "true", Effect: v1.TaintEffectNoSchedule})
	}
	return node
}

// reconciledLabels are the labels that follow the kubelet's configuration also on a Node that
// exists already. Other labels are not touched: an administrator may have changed them.
var reconciledLabels = []string{
	v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, labelBetaOS, labelBetaArch,
	v1.LabelTopologyZone, v1.LabelTopologyRegion,
	v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType,
}

// reconcile sets labels and annotation of an existing Node to what the kubelet would register.
// It does not touch taints: they are for new nodes, and may have been removed on purpose.
func (n *Node) reconcile(existing *v1.Node) {
	want := n.initialNode()
	if existing.Labels == nil {
		existing.Labels = map[string]string{}
	}
	for _, label := range reconciledLabels {
		switch value, ok := want.Labels[label]; {
		case !ok:
		case value == "":
			delete(existing.Labels, label)
		default:
			existing.Labels[label] = value
		}
	}
	if value, ok := want.Annotations[annotationAttach]; ok {
		annotate(existing, annotationAttach, value)
	} else {
		delete(existing.Annotations, annotationAttach)
	}
}
