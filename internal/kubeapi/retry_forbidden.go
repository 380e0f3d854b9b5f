package kubeapi

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// forbiddenBackoff allows seven requests within 1.3 s.
var forbiddenBackoff = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 7}

// RetryForbidden retries a forbidden request for about a second. The node's watch may deliver a new
// pod before the node authorizer has seen it, and until then the API server forbids reads on
// behalf of the pod.
func RetryForbidden[T any](ctx context.Context, request func() (T, error)) (got T, err error) {
	backoffErr := wait.ExponentialBackoffWithContext(ctx, forbiddenBackoff, func(context.Context) (bool, error) {
		got, err = request()
		return !apierrors.IsForbidden(err), nil
	})
	if err == nil { // ctx was done before the first request
		err = backoffErr
	}
	return got, err
}
