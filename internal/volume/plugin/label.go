package plugin

import "context"

// Labelled is a kind some of whose volumes can be mounted with an SELinux label for all of
// their files, so that none of them need be labelled itself.
type Labelled interface {
	// MountsLabelled reports whether Stage and SetUp heed Request.Label for the volume.
	MountsLabelled(ctx context.Context, s Spec) (bool, error)
}
