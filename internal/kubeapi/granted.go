package kubeapi

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// grantedRetries make seven requests within 1.3 s.
var grantedRetries = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 7}

// Granted asks again, for a moment, what the API server refuses. It tells a node of a new
// pod before its own checks have heard of the pod, and until then refuses what the node may
// ask for on the pod's behalf: the refusal is no news for the pod's owner.
func Granted[T any](ctx context.Context, ask func() (T, error)) (got T, err error) {
	ended := wait.ExponentialBackoffWithContext(ctx, grantedRetries, func(context.Context) (bool, error) {
		got, err = ask()
		return !apierrors.IsForbidden(err), nil
	})
	if err == nil { // ctx was done before the first request
		err = ended
	}
	return got, err
}
