package kubeclient

import (
	"context"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRequestsOfReset: a load balancer without a backend resets connections. Each read sends few requests then, as those
// who read have a back-off.
func TestRequestsOfReset(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(context.Context, Pods) error
		want int
	}{
		{"get", func(ctx context.Context, pods Pods) error {
			_, err := pods.Get(ctx, "a", metav1.GetOptions{})
			return err
		}, 2},
		{"list", func(ctx context.Context, pods Pods) error { _, err := pods.List(ctx, metav1.ListOptions{}); return err }, 1},
		{"watch", func(ctx context.Context, pods Pods) error {
			_, err := pods.Watch(ctx, metav1.ListOptions{})
			return err
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				client, err := New(&rest.Config{Host: "https://api.example"}, &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					requests++
					return nil, syscall.ECONNRESET
				})})
				if err != nil {
					t.Fatal(err)
				}
				_ = c.read(t.Context(), client.Pods("n")) // a watch ends without an error
				if requests != c.want {
					t.Errorf("%d requests, want %d", requests, c.want)
				}
			})
		})
	}
}
