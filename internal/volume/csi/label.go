package csi

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"swiftlet/internal/volume/plugin"
)

// SupportsSELinuxMount holds for drivers that say so.
func (p *Plugin) SupportsSELinuxMount(ctx context.Context, s plugin.Spec) (bool, error) {
	if s.PV == nil || p.deps.Client == nil {
		return false, nil
	}
	known, err := p.described(ctx, persistent(s).driver)
	if err != nil {
		return false, said("failed to query for SELinuxMount support: %w", err)
	}
	return known != nil && known.Spec.SELinuxMount != nil && *known.Spec.SELinuxMount, nil
}

// mountFlags are the volume's own, and its label. The quotes are for commas in the label.
func mountFlags(r plugin.Request) []string {
	if r.Label == "" {
		return r.MountOptions()
	}
	return append(slices.Clone(r.MountOptions()), fmt.Sprintf("context=%q", r.Label))
}

// checkLabel refuses a pod whose label is not the one that the volume is staged with: a
// mounted volume has one label for all. A note that cannot be read is written again by Stage.
func (p *Plugin) checkLabel(r plugin.Request, staged string) error {
	n, ok, err := p.readNote(filepath.Dir(staged))
	if err != nil || !ok || n.SELinux == r.Label {
		return nil
	}
	mounted, err := p.deps.Mounts.Mounted(staged)
	if err != nil || !mounted {
		return err
	}
	return fmt.Errorf("conflicting SELinux labels of volume %s: %q and %q", r.Name(), n.SELinux, r.Label)
}
