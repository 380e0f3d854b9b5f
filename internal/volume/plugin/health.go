package plugin

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// ErrNotTold says that nobody can tell how the volume fares.
var ErrNotTold = errors.New("nobody tells how the volume fares")

// Doctor is a kind that may know how its volumes fare.
type Doctor interface {
	// Health lists what ails a volume, none for one that nothing is known to ail. The volume
	// is up as at says, or was tried to be brought up in vain: then at says nothing. It may
	// be called beside all other calls.
	Health(ctx context.Context, r Request, at Result) ([]v1.VolumeHealthCondition, error)
}
