package plugin

import "context"

// SELinuxMounter is a kind that can mount volumes with an SELinux label for all files, so that the
// files need not be relabelled.
type SELinuxMounter interface {
	// SupportsSELinuxMount reports whether Stage and SetUp use Request.Label for the volume.
	SupportsSELinuxMount(ctx context.Context, s Spec) (bool, error)
}
