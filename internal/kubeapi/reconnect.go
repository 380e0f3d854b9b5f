package kubeapi

import (
	"net/http"
	"sync/atomic"
)

// reconnectTransport calls onReconnect when the API server responds again after it was
// unreachable. Only connection errors count as unreachable: an error status may concern one
// request alone.
type reconnectTransport struct {
	next        http.RoundTripper
	unreachable atomic.Bool
	onReconnect func()
	onResponse  func() // called for each response; may be nil
}

func (t *reconnectTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode < http.StatusInternalServerError && t.onResponse != nil {
		t.onResponse()
	}
	switch {
	case err != nil:
		if r.Context().Err() == nil { // not canceled by the caller
			t.unreachable.Store(true)
		}
	case response.StatusCode < http.StatusMultipleChoices && t.unreachable.CompareAndSwap(true, false):
		t.onReconnect()
	}
	return response, err
}
