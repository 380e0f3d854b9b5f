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

// blank is the Node as first registered, without status.
func (s *State) blank() *v1.Node {
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

// reconciledLabels are those that follow the agent's configuration on a Node that was
// there before. Others may have been changed by people, and stay.
var reconciledLabels = []string{
	v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, labelBetaOS, labelBetaArch,
	v1.LabelTopologyZone, v1.LabelTopologyRegion,
	v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType,
}

// reconcile brings an existing Node's labels and annotation in line with what we would
// have registered. Taints are left alone: they are for a node's first minutes, and
// whoever took them off meant it.
func (n *Node) reconcile(existing *v1.Node) {
	want := n.blank()
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
		if existing.Annotations == nil {
			existing.Annotations = map[string]string{}
		}
		existing.Annotations[annotationAttach] = value
	} else {
		delete(existing.Annotations, annotationAttach)
	}
}
