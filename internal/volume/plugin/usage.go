package plugin

import (
	"context"
	"swiftlet/internal/pod"
)

// UsageReporter is a kind that reports the usage of a volume itself, instead of a walk over its
// files.
type UsageReporter interface {
	// Measure may block past the end of ctx if the file system hangs.
	Measure(ctx context.Context, r Request, at Result) (pod.VolumeUsage, error)
}
