package plugin

import "context"

// UsageReporter is a kind that reports the usage of a volume itself, instead of a walk over its
// files.
type UsageReporter interface {
	// Measure may block past the end of ctx if the file system hangs.
	Measure(ctx context.Context, r Request, at Result) (Usage, error)
}

// Usage is the usage of a volume. Unknown fields are negative.
type Usage struct {
	CapacityBytes, AvailableBytes, UsedBytes int64
	Inodes, InodesFree, InodesUsed           int64
}
