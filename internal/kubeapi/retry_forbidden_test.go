package kubeapi

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/kubeclient/kubeclienttest"
)

func TestRetryForbidden(t *testing.T) {
	var (
		refused = apierrors.NewForbidden(v1.Resource("serviceaccounts"), "a", nil)
		missing = apierrors.NewNotFound(v1.Resource("serviceaccounts"), "a")
	)
	for name, c := range map[string]struct {
		results  []error // the last one repeats
		limit    time.Duration
		want     error
		requests int
		after    time.Duration
	}{
		"allowed at once":                 {results: []error{nil}, requests: 1},
		"allowed after two retries":       {results: []error{refused, refused, nil}, requests: 3, after: 60 * time.Millisecond},
		"always forbidden":                {results: []error{refused}, want: refused, requests: 7, after: 1260 * time.Millisecond},
		"other errors are not retried":    {results: []error{refused, missing}, want: missing, requests: 2, after: 20 * time.Millisecond},
		"context ends during the backoff": {results: []error{refused}, limit: 100 * time.Millisecond, want: refused, requests: 3, after: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				began, requests := time.Now(), 0
				_, err := RetryForbidden(ctx, func() (struct{}, error) {
					requests++
					return struct{}{}, c.results[min(requests, len(c.results))-1]
				})
				if err != c.want || requests != c.requests || time.Since(began) != c.after {
					t.Errorf("%v after %d requests and %v, want %v after %d and %v", err, requests, time.Since(began), c.want, c.requests, c.after)
				}
			})
		})
	}
}

// The readers of what pods need retry forbidden requests, so that pod workers need not.
func TestReadersRetryForbidden(t *testing.T) {
	for name, read := range map[string]func(kubeclient.Interface) error{
		"token": func(api kubeclient.Interface) error {
			tokens, err := NewTokens(TokensDeps{Client: api, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			_, err = tokens.Get(t.Context(), "ns", "a", request("p", 600))
			return err
		},
		"claim": func(api kubeclient.Interface) error {
			_, err := (&Claims{api}).Claim(t.Context(), "ns", "a")
			return err
		},
		"configmap": func(api kubeclient.Interface) error {
			objects, err := NewObjects(ObjectsConfig{Strategy: StrategyGet}, ObjectsDeps{Client: api, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			objects.Register(podUsing("p", configMapVolume("a")))
			_, err = objects.ConfigMap(t.Context(), "ns", "a")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientset(
				&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}},
				configMap("a", "1"))
			requests := 0
			api.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
				if requests++; requests < 3 {
					return true, nil, apierrors.NewForbidden(v1.Resource("things"), "a", nil)
				}
				if made, ok := a.(ktesting.CreateAction); ok { // the fake API server cannot issue tokens
					return true, made.GetObject(), nil
				}
				return false, nil, nil
			})
			if err := read(kubeclienttest.Wrap(api)); err != nil || requests != 3 {
				t.Errorf("%v after %d requests, want nil after 3", err, requests)
			}
		})
	}
}
