// Package image handles image volumes. The runtime mounts them when it creates a container; there is
// nothing to do before.
package image

import (
	"context"

	"swiftlet/internal/volume/plugin"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/image"

// Plugin accepts image volumes.
type Plugin struct{}

func (Plugin) Name() string { return Name }

func (Plugin) Handles(s plugin.Spec) bool { return s.PV == nil && s.Volume.Image != nil }

// SetUp does nothing: an image volume has no path on the node.
func (Plugin) SetUp(context.Context, plugin.Request) (plugin.Result, error) {
	return plugin.Result{Image: true, ReadOnly: true, SELinuxRelabel: true}, nil
}
