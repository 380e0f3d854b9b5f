package kubeclient_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"swiftlet/internal/kubeclient"
)

// silent is an API server that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestRequestsEnd(t *testing.T) {
	for name, request := range map[string]func(context.Context, kubeclient.Interface) error{
		"get": func(ctx context.Context, c kubeclient.Interface) error {
			_, err := c.Pods("ns").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"list": func(ctx context.Context, c kubeclient.Interface) error {
			_, err := c.Pods("ns").List(ctx, metav1.ListOptions{})
			return err
		},
		"create": func(ctx context.Context, c kubeclient.Interface) error {
			_, err := c.Pods("ns").Create(ctx, &v1.Pod{}, metav1.CreateOptions{})
			return err
		},
		"delete": func(ctx context.Context, c kubeclient.Interface) error {
			return c.Pods("ns").Delete(ctx, "a", metav1.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := kubeclient.New(&rest.Config{Host: "http://api.invalid"}, &http.Client{Transport: silent{}})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := request(t.Context(), c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(began); took != 90*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
