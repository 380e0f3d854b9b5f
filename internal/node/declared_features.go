package node

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
)

// gates adapts Config.Gate to the interface of nodedeclaredfeatures.
type gates func(string) bool

func (g gates) Enabled(feature string) bool { return g(feature) }

// fillDeclaredFeatures lists the features that the scheduler matches with the ones that a pod
// requires.
func (n *Node) fillDeclaredFeatures(_ context.Context, node *v1.Node) error {
	if n.cfg.Gate == nil {
		return nil
	}
	v, err := version.ParseSemantic(n.cfg.Version)
	if err != nil {
		return fmt.Errorf("parse kubelet version: %w", err)
	}
	f := n.runtime.status.GetFeatures()
	node.Status.DeclaredFeatures = nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(
		&nodedeclaredfeatures.NodeConfiguration{
			FeatureGates: gates(n.cfg.Gate),
			Version:      v,
			RuntimeFeatures: nodedeclaredfeatures.RuntimeFeatures{
				UserNamespacesHostNetwork: f.GetUserNamespacesHostNetwork(),
				MountOptions:              f.GetMountOptions(),
			},
		})
	return nil
}
