package crifaults

import (
	"context"
	"errors"
	"maps"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"swiftlet/test/criproxy"
)

// Fault changes calls. The zero value changes nothing. Its functions are those of criproxy.Hooks.
type Fault struct {
	Before func(ctx context.Context, c criproxy.Call) error
	Answer func(ctx context.Context, c criproxy.Call, response []byte) ([][]byte, error)
}

// Proxy forwards the calls of one kubelet.
type Proxy struct {
	*criproxy.Proxy

	mu    sync.Mutex
	fault Fault
	ended chan struct{} // closed when fault ends
	calls map[string]int
	seen  func(criproxy.Call)
}

// errEnded is the response to calls that hang until the fault ends.
var errEnded = status.Error(codes.Unavailable, "the runtime was restarted")

// Start listens on socket and forwards calls to the socket runtime. The caller closes the proxy.
func Start(socket, runtime string) (*Proxy, error) {
	p := &Proxy{ended: make(chan struct{}), calls: map[string]int{}}
	var err error
	p.Proxy, err = criproxy.Start(socket, runtime, criproxy.Hooks{Before: p.before, Answer: p.answer})
	return p, err
}

// Set injects a fault from now on, and ends the one before it; the zero value is none. Calls that hang in a
// fault fail when it ends.
func (p *Proxy) Set(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.fault, p.ended = fault, make(chan struct{})
}

// OnCall calls f for each call from now on; nil ends that.
func (p *Proxy) OnCall(f func(criproxy.Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = f
}

// Calls returns the number of calls since the last time, by method.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted := maps.Clone(p.calls)
	clear(p.calls)
	return counted
}

func (p *Proxy) before(ctx context.Context, c criproxy.Call) error {
	p.mu.Lock()
	p.calls[c.Method()]++
	seen := p.seen
	p.mu.Unlock()
	if seen != nil {
		seen(c)
	}
	fault, ctx, cancel := p.current(ctx)
	defer cancel(nil)
	if fault.Before == nil {
		return nil
	}
	return whileItLasts(ctx, fault.Before(ctx, c))
}

func (p *Proxy) answer(ctx context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
	fault, ctx, cancel := p.current(ctx)
	defer cancel(nil)
	if fault.Answer == nil {
		return [][]byte{response}, nil
	}
	answers, err := fault.Answer(ctx, c, response)
	return answers, whileItLasts(ctx, err)
}

// current returns the fault and a context that is done when the fault ends.
func (p *Proxy) current(ctx context.Context) (Fault, context.Context, context.CancelCauseFunc) {
	p.mu.Lock()
	fault, ended := p.fault, p.ended
	p.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ended:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return fault, ctx, cancel
}

// whileItLasts returns errEnded in place of the error of a context that ended with the fault.
func whileItLasts(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errEnded) {
		return errEnded
	}
	return err
}
