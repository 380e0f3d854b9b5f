package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"swiftlet/internal/volume/plugin"
)

// AttachLimitError says that the node can take no more volumes: the pod must go elsewhere.
type AttachLimitError struct{ Unmounted, Unattached []string }

func (e *AttachLimitError) Error() string {
	return fmt.Sprintf("Node has reached its volume attachment limit, rejecting pod. unmounted volumes=%v, unattached volumes=%v, failed to process volumes=[]: %v",
		e.Unmounted, e.Unattached, context.DeadlineExceeded)
}

// limitTimeout bounds the asking why volumes are not attached.
const limitTimeout = 30 * time.Second

// attachLimit returns an *AttachLimitError where one of the volumes that the pod has waited
// for cannot be attached for want of room, else nil.
func (v *Volumes) attachLimit(ctx context.Context, pv *podVolumes, missing map[string]error) error {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	waiting := unattached(missing)
	for _, name := range waiting {
		if v.noRoom(ctx, pv, name) {
			return &AttachLimitError{Unmounted: slices.Sorted(maps.Keys(missing)), Unattached: waiting}
		}
	}
	return nil
}

func (v *Volumes) noRoom(ctx context.Context, pv *podVolumes, name string) bool {
	v.mu.Lock()
	p := pv.pod
	v.mu.Unlock()
	vol := findVolume(p, name)
	if vol == nil {
		return false
	}
	spec, err := v.resolve(ctx, p, vol)
	if err != nil {
		return false
	}
	limiter, ok := v.kindFor(spec).(plugin.AttachLimiter)
	return ok && limiter.AttachLimitReached(ctx, spec)
}
