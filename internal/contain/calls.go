package contain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxAbandoned is the default limit of abandoned calls. Each blocks a thread.
const maxAbandoned = 128

// Calls makes calls that may hang, such as system calls on a file system whose server does not
// answer. The zero value is ready to use, from any goroutine.
type Calls struct {
	// Limit is the number of calls that may hang after their owners have gone on; zero means 128.
	// With that many, further calls fail.
	Limit int

	mu sync.Mutex
	// running has the calls in progress by their name; the channel is closed when the call ends.
	running   map[string]chan struct{}
	abandoned int
}

// HangError is the error of a call that had not returned when its context ended.
type HangError struct {
	// Name says what hangs.
	Name string
	// Earlier: an earlier call of that name hangs, so this one was not made.
	Earlier bool
	Err     error // of the context
}

func (e *HangError) Error() string { return fmt.Sprintf("%s does not return: %v", e.Name, e.Err) }
func (e *HangError) Unwrap() error { return e.Err }

// LimitError is the error of a call that was not made, because too many hang.
type LimitError struct {
	Name    string
	Hanging int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: not tried, %d earlier calls hang", e.Name, e.Hanging)
}

// Do calls f in a goroutine of its own and returns its error, or a *HangError when ctx is done. f then
// continues. Until it returns, a second call of the same name waits for it, so that one name blocks
// one goroutine. A panic of f is returned as a *Panic.
func (c *Calls) Do(ctx context.Context, name string, f func() error) error {
	_, err := Await(ctx, c, name, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// Await is Do for a function that returns a value.
func Await[T any](ctx context.Context, c *Calls, name string, f func() (T, error)) (T, error) {
	var none T
	done, err := c.begin(ctx, name)
	if err != nil {
		return none, err
	}
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := Value(f)
		c.end(name, done)
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
	}
	c.abandon(done)
	return none, &HangError{Name: name, Err: context.Cause(ctx)}
}

// begin waits until no call of that name runs, and registers one.
func (c *Calls) begin(ctx context.Context, name string) (done chan struct{}, err error) {
	for {
		c.mu.Lock()
		earlier := c.running[name]
		if earlier == nil {
			defer c.mu.Unlock()
			limit := c.Limit
			if limit == 0 {
				limit = maxAbandoned
			}
			if c.abandoned >= limit {
				return nil, &LimitError{Name: name, Hanging: c.abandoned}
			}
			if c.running == nil {
				c.running = map[string]chan struct{}{}
			}
			done = make(chan struct{})
			c.running[name] = done
			return done, nil
		}
		c.mu.Unlock()
		select {
		case <-earlier:
		case <-ctx.Done():
			return nil, &HangError{Name: name, Earlier: true, Err: context.Cause(ctx)}
		}
	}
}

func (c *Calls) end(name string, done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, name)
	close(done)
}

// abandon counts a call until it ends.
func (c *Calls) abandon(done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-done:
		return
	default:
	}
	c.abandoned++
	go func() {
		<-done
		c.mu.Lock()
		defer c.mu.Unlock()
		c.abandoned--
	}()
}

// Running lists the names of the calls in progress.
func (c *Calls) Running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.running))
}

// Hangs reports whether a call of that name is in progress.
func (c *Calls) Hangs(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[name] != nil
}
