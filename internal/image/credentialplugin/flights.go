package credentialplugin

import (
	"context"
	"sync"
)

// flights are the questions underway. Whoever asks the same waits for the answer, unless
// the one who asks first gives up.
type flights struct {
	mu      sync.Mutex
	current map[flightKey]*flight
}

// flightKey is a question: the holder stands for one token, because not every answer may
// be shared among the pods of a service account.
type flightKey struct{ repository, holder string }

// flight is one question. Its results may be read when done is closed.
type flight struct {
	done chan struct{}
	auth logins
	err  error
	// quit: its owner gave up, which says nothing about the answer.
	quit bool
}

func (f *flights) share(ctx context.Context, key flightKey, find func() (logins, error)) (logins, error) {
	for {
		mine, other := f.join(key)
		if mine != nil {
			mine.auth, mine.err = find()
			mine.quit = mine.err != nil && ctx.Err() != nil
			f.land(key, mine)
			return mine.auth, mine.err
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !other.quit {
			return other.auth, other.err
		}
	}
}

func (f *flights) join(key flightKey) (mine, other *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.current[key]; other != nil {
		return nil, other
	}
	mine = &flight{done: make(chan struct{})}
	f.current[key] = mine
	return mine, nil
}

func (f *flights) land(key flightKey, mine *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.current, key)
	close(mine.done)
}
