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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

func TestGranted(t *testing.T) {
	var (
		refused = apierrors.NewForbidden(v1.Resource("serviceaccounts"), "a", nil)
		missing = apierrors.NewNotFound(v1.Resource("serviceaccounts"), "a")
	)
	for name, c := range map[string]struct {
		answers []error // the last one stays
		limit   time.Duration
		want    error
		asked   int
		after   time.Duration
	}{
		"at once":         {answers: []error{nil}, asked: 1},
		"a moment later":  {answers: []error{refused, refused, nil}, asked: 3, after: 60 * time.Millisecond},
		"never":           {answers: []error{refused}, want: refused, asked: 7, after: 1260 * time.Millisecond},
		"another error":   {answers: []error{refused, missing}, want: missing, asked: 2, after: 20 * time.Millisecond},
		"nobody waits on": {answers: []error{refused}, limit: 100 * time.Millisecond, want: refused, asked: 3, after: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.limit)
					defer cancel()
				}
				began, asked := time.Now(), 0
				_, err := Granted(ctx, func() (struct{}, error) {
					asked++
					return struct{}{}, c.answers[min(asked, len(c.answers))-1]
				})
				if err != c.want || asked != c.asked || time.Since(began) != c.after {
					t.Errorf("%v after %d askings and %v, want %v after %d and %v", err, asked, time.Since(began), c.want, c.asked, c.after)
				}
			})
		})
	}
}

// What pods need is asked for again by those who ask for it, not by the pods' workers.
func TestGrantedToPods(t *testing.T) {
	for name, read := range map[string]func(kubernetes.Interface) error{
		"token": func(api kubernetes.Interface) error {
			tokens, err := NewTokens(TokensDeps{Client: api, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			_, err = tokens.Get(t.Context(), "ns", "a", request("p", 600))
			return err
		},
		"claim": func(api kubernetes.Interface) error {
			_, err := (&Claims{api}).Claim(t.Context(), "ns", "a")
			return err
		},
		"configmap": func(api kubernetes.Interface) error {
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
			asked := 0
			api.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
				if asked++; asked < 3 {
					return true, nil, apierrors.NewForbidden(v1.Resource("things"), "a", nil)
				}
				if made, ok := a.(ktesting.CreateAction); ok { // a token, which this server cannot make itself
					return true, made.GetObject(), nil
				}
				return false, nil, nil
			})
			if err := read(api); err != nil || asked != 3 {
				t.Errorf("%v after %d askings, want nil after 3", err, asked)
			}
		})
	}
}
