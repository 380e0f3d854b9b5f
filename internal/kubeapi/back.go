package kubeapi

import (
	"net/http"
	"sync/atomic"
)

// returning notices when the API server answers again after it could not be reached. It goes
// by the connection alone: an error that the API server sends may be one request's own.
type returning struct {
	next http.RoundTripper
	away atomic.Bool
	back func()
}

func (t *returning) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		if r.Context().Err() == nil { // nobody gave up waiting
			t.away.Store(true)
		}
	case answer.StatusCode < http.StatusMultipleChoices && t.away.CompareAndSwap(true, false):
		t.back()
	}
	return answer, err
}
