package credentialplugin

import (
	"context"
	"sync"
)

// inFlightRequests are the requests to a plugin in progress.
type inFlightRequests struct {
	mu    sync.Mutex
	byKey map[requestKey]*inFlightRequest
}

// requestKey identifies a request. The identity includes the token, because the pods of a
// service account may not share every response.
type requestKey struct{ repository, identity string }

// inFlightRequest is one request. Its results may be read once done is closed.
type inFlightRequest struct {
	done chan struct{}
	auth logins
	err  error
	// canceled: the caller that runs the plugin was canceled, which is no result for others.
	canceled bool
}

// share calls find, or waits for the result of an equal request. If that request is canceled,
// one of those that wait calls find.
func (f *inFlightRequests) share(ctx context.Context, key requestKey, find func() (logins, error)) (logins, error) {
	for {
		mine, other := f.startOrGet(key)
		if mine != nil {
			mine.auth, mine.err = find()
			mine.canceled = mine.err != nil && ctx.Err() != nil
			f.finish(key, mine)
			return mine.auth, mine.err
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !other.canceled {
			return other.auth, other.err
		}
	}
}

func (f *inFlightRequests) startOrGet(key requestKey) (mine, other *inFlightRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.byKey[key]; other != nil {
		return nil, other
	}
	mine = &inFlightRequest{done: make(chan struct{})}
	f.byKey[key] = mine
	return mine, nil
}

func (f *inFlightRequests) finish(key requestKey, mine *inFlightRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
	close(mine.done)
}
