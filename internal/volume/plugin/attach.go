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

// Connector is an Attacher whose volumes the node itself has to reach, such as by a login to
// their server.
type Connector interface {
	// Connect returns the device of a volume that is attached. It is called before Stage,
	// for the first pod and after every restart of the agent, also where the volume is
	// staged already. Calls for one device never overlap. Unstage undoes it, by what the
	// disk shows; so that is written before anything is done.
	Connect(ctx context.Context, r Request) (devicePath string, err error)
}

// AttachLimiter is an Attacher that knows when a node can take no more volumes.
type AttachLimiter interface {
	// NoRoom reports whether the volume could not be attached because the node has as many
	// as it can take. It is asked when a pod has waited for the volume in vain.
	NoRoom(ctx context.Context, s Spec) bool
}
