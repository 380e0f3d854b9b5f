package plugin

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Expander is a kind whose volumes can grow while they are in use.
type Expander interface {
	// Expand has the volume, which is up as at says, use all of size. It is called when the
	// volume has less on this node than the PersistentVolume's capacity, and may be repeated.
	Expand(ctx context.Context, r Request, at Result, size resource.Quantity) error
}

// Meter is a kind that knows better than the file system how much of a volume is used.
type Meter interface {
	// Measure may outlast ctx: a file system that does not answer keeps it for good.
	Measure(ctx context.Context, r Request, at Result) (Usage, error)
}

// Usage is how much of a volume is used. A field that is not known is negative.
type Usage struct {
	CapacityBytes, AvailableBytes, UsedBytes int64
	Inodes, InodesFree, InodesUsed           int64
}
