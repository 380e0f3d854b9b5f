package plugin

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
)

// ErrHealthUnknown means that the health of the volume is not reported.
var ErrHealthUnknown = errors.New("the health of the volume is not reported")

// HealthReporter is a kind that can report the health of its volumes.
type HealthReporter interface {
	// Health lists the health conditions of a volume, none for a healthy one. If the volume
	// could not be mounted, at is the zero value. Calls may overlap with all other calls.
	Health(ctx context.Context, r Request, at Result) ([]v1.VolumeHealthCondition, error)
}
