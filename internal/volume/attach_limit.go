package volume

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"swiftlet/internal/volume/plugin"
)

// AttachLimitError means that the node has reached its limit of attached volumes: the pod must run
// elsewhere.
type AttachLimitError struct{ Unmounted, Unattached []string }

func (e *AttachLimitError) Error() string {
	return fmt.Sprintf("Node has reached its volume attachment limit, rejecting pod. unmounted volumes=%v, unattached volumes=%v, failed to process volumes=[]: %v",
		e.Unmounted, e.Unattached, context.DeadlineExceeded)
}

// attachLimitTimeout bounds the checks of the attach limit.
const attachLimitTimeout = 30 * time.Second

// attachLimit returns an *AttachLimitError if one of the missing volumes cannot be attached because of
// the node's limit, else nil.
func (v *Volumes) attachLimit(ctx context.Context, pv *podVolumes, missing map[string]error) error {
	ctx, cancel := context.WithTimeout(ctx, attachLimitTimeout)
	defer cancel()
	waiting := unattached(missing)
	for _, name := range waiting {
		if v.attachLimitReached(ctx, pv, name) {
			return &AttachLimitError{Unmounted: slices.Sorted(maps.Keys(missing)), Unattached: waiting}
		}
	}
	return nil
}

func (v *Volumes) attachLimitReached(ctx context.Context, pv *podVolumes, name string) bool {
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
