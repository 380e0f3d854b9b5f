package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

func TestReturnIsTold(t *testing.T) {
	returns := 0
	var code int
	var trouble error
	transport := &returning{back: func() { returns++ }, next: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code}, trouble
	})}
	ask := func(ctx context.Context, c int, err error, want int) {
		t.Helper()
		code, trouble = c, err
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://server", nil)
		if answer, got := transport.RoundTrip(request); answer.StatusCode != c || got != err {
			t.Errorf("the answer was changed to %v, %v", answer, got)
		}
		if returns != want {
			t.Errorf("after %d, %v it has returned %d times, not %d", c, err, returns, want)
		}
	}
	gone, given := errors.New("connection refused"), t.Context()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ask(given, 200, nil, 0) // it was never away
	ask(ended, 0, gone, 0)  // nobody waited for the answer
	ask(given, 200, nil, 0)
	ask(given, 500, nil, 0) // that is an answer too
	ask(given, 200, nil, 0)
	ask(given, 0, gone, 0)
	ask(given, 0, gone, 0)
	ask(given, 503, nil, 0) // it is not ready yet
	ask(given, 403, nil, 0)
	ask(given, 201, nil, 1)
	ask(given, 200, nil, 1)
	ask(given, 0, gone, 1)
	ask(given, 200, nil, 2)
}
