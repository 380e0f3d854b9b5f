package node

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
)

// gates adapts Config.Gate.
type gates func(string) bool

func (g gates) Enabled(feature string) bool { return g(feature) }

// fillDeclared lists the features that the scheduler must know of before it sends a pod
// which needs them here.
func (n *Node) fillDeclared(_ context.Context, node *v1.Node) error {
	if n.cfg.Gate == nil {
		return nil
	}
	v, err := version.ParseSemantic(n.cfg.Version)
	if err != nil {
		return fmt.Errorf("parse own version: %w", err)
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
