package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Attacher is a kind whose volumes a controller attaches to the node before it can use them.
type Attacher interface {
	// AttachName is the name of the volume in the node's status (volumesInUse and
	// volumesAttached); "" for a volume that is not attached.
	AttachName(ctx context.Context, s Spec) (v1.UniqueVolumeName, error)
	// Attached returns nil once the volume can be used here. It is called when the node's
	// status shows the volume as attached, or where nobody controls that, and does not wait
	// for long itself: an error is told to the pod's owner, and it is asked again.
	Attached(ctx context.Context, r Request) error
}

// AttachLimiter is an Attacher that knows when a node can take no more volumes.
type AttachLimiter interface {
	// NoRoom reports whether the volume could not be attached because the node has as many
	// as it can take. It is asked when a pod has waited for the volume in vain.
	NoRoom(ctx context.Context, s Spec) bool
}
