package csi

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"swiftlet/internal/volume/plugin"
)

// SupportsSELinuxMount reports whether the CSIDriver object has seLinuxMount.
func (p *Plugin) SupportsSELinuxMount(ctx context.Context, s plugin.Spec) (bool, error) {
	if s.PV == nil || p.deps.Client == nil {
		return false, nil
	}
	known, err := p.driverObject(ctx, persistentSource(s).driver)
	if err != nil {
		return false, errorf("failed to query for SELinuxMount support: %w", err)
	}
	return known != nil && known.Spec.SELinuxMount != nil && *known.Spec.SELinuxMount, nil
}

// mountFlags are the mount options of the volume, with its label. The label may have commas, so it
// is quoted.
func mountFlags(r plugin.Request) []string {
	if r.Label == "" {
		return r.MountOptions()
	}
	return append(slices.Clone(r.MountOptions()), fmt.Sprintf("context=%q", r.Label))
}

// checkLabel rejects a pod whose label differs from the one that the volume is staged with: a mount
// has one label for all files. Stage writes unreadable volume data again.
func (p *Plugin) checkLabel(r plugin.Request, staged string) error {
	n, ok, err := p.readVolumeData(filepath.Dir(staged))
	if err != nil || !ok || n.SELinux == r.Label {
		return nil
	}
	mounted, err := p.deps.Mounts.Mounted(staged)
	if err != nil || !mounted {
		return err
	}
	return fmt.Errorf("conflicting SELinux labels of volume %s: %q and %q", r.Name(), n.SELinux, r.Label)
}
