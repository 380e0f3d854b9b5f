package kubeclient

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// The rate limit is for all requests of a client, not for each API group.
func TestGroupsShareRateLimit(t *testing.T) {
	c, err := New(&rest.Config{Host: "localhost", QPS: 50, Burst: 100}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	limit := c.core.GetRateLimiter()
	if limit == nil || limit.QPS() != 50 {
		t.Fatalf("rate limit %v, want 50 per second", limit)
	}
	for _, group := range []rest.Interface{c.authentication, c.authorization, c.certificates, c.coordination, c.node, c.resource, c.storage} {
		if group.GetRateLimiter() != limit {
			t.Errorf("%s has another rate limit", group.APIVersion())
		}
	}
	if c, err = New(&rest.Config{Host: "localhost", QPS: -1}, http.DefaultClient); err != nil || c.core.GetRateLimiter() != nil || c.storage.GetRateLimiter() != nil {
		t.Errorf("a negative rate is a limit: %v", err)
	}
	if _, err := New(&rest.Config{Host: "localhost", QPS: 5}, http.DefaultClient); err == nil {
		t.Error("a rate without a burst was accepted")
	}
}
