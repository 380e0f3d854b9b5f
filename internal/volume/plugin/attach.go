package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Attacher is a kind whose volumes a controller attaches to the node before they can be mounted.
type Attacher interface {
	// AttachName is the name of the volume in the node's status (volumesInUse and
	// volumesAttached); "" for a volume that is not attached.
	AttachName(ctx context.Context, s Spec) (v1.UniqueVolumeName, error)
	// Attached returns nil once the volume can be used on this node. It is called when the
	// node's status shows the volume as attached, or at once if no controller attaches volumes.
	// It does not block for long: an error becomes an event, and the call is retried.
	Attached(ctx context.Context, r Request) error
}

// Connector is an Attacher whose volumes the node itself has to connect to, such as by a login to
// an iSCSI target.
type Connector interface {
	// Connect returns the device of an attached volume. It is called before Stage, for the
	// first pod and after every restart of the agent, even if the volume is staged. Calls for
	// one device never overlap. Unstage undoes it from what is on disk, so Connect writes that
	// first.
	Connect(ctx context.Context, r Request) (devicePath string, err error)
}

// AttachLimiter is an Attacher that knows the node's limit of attached volumes.
type AttachLimiter interface {
	// AttachLimitReached reports whether the volume could not be attached because the node has
	// reached its limit. It is called when the wait for the volume has timed out.
	AttachLimitReached(ctx context.Context, s Spec) bool
}
