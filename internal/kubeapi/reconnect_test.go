package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

func TestOnReconnect(t *testing.T) {
	reconnects := 0
	var code int
	var dialErr error
	transport := &reconnectTransport{onReconnect: func() { reconnects++ }, next: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code}, dialErr
	})}
	roundTrip := func(ctx context.Context, c int, err error, want int) {
		t.Helper()
		code, dialErr = c, err
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", nil)
		if response, got := transport.RoundTrip(request); response.StatusCode != c || got != err {
			t.Errorf("the response was changed to %v, %v", response, got)
		}
		if reconnects != want {
			t.Errorf("after %d, %v: %d reconnects, want %d", c, err, reconnects, want)
		}
	}
	refused, ctx := errors.New("connection refused"), t.Context()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	roundTrip(ctx, 200, nil, 0)        // was always reachable
	roundTrip(canceled, 0, refused, 0) // the caller gave up
	roundTrip(ctx, 200, nil, 0)
	roundTrip(ctx, 500, nil, 0) // an error status is a response
	roundTrip(ctx, 200, nil, 0)
	roundTrip(ctx, 0, refused, 0)
	roundTrip(ctx, 0, refused, 0)
	roundTrip(ctx, 503, nil, 0) // not ready yet
	roundTrip(ctx, 403, nil, 0)
	roundTrip(ctx, 201, nil, 1)
	roundTrip(ctx, 200, nil, 1)
	roundTrip(ctx, 0, refused, 1)
	roundTrip(ctx, 200, nil, 2)
}
