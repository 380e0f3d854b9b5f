package kubeapi

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The pauses between askings double from the first to the last: seven askings in 1.3 s.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 640 * time.Millisecond
)

// Granted asks again, for a moment, what the API server refuses. It tells a node of a new
// pod before its own checks have heard of the pod, and until then refuses what the node may
// ask for on the pod's behalf: the refusal is no news for the pod's owner.
func Granted[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for pause := firstPause; ; pause *= 2 {
		got, err := ask()
		if !apierrors.IsForbidden(err) || pause > lastPause {
			return got, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return got, err
		}
	}
}
