package plugin

import "context"

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
