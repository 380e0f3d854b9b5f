package crifaults

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"swiftlet/test/criproxy"
)

// events is the method of the event stream.
const events = "GetContainerEvents"

// Hanging never answers calls that match.
func Hanging(match func(criproxy.Call) bool) Fault {
	return Fault{Before: func(ctx context.Context, c criproxy.Call) error {
		if !match(c) {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

// Delaying delays each call but the event stream.
func Delaying(delay time.Duration) Fault {
	return Fault{Before: func(ctx context.Context, c criproxy.Call) error {
		if c.Method() == events {
			return nil
		}
		select {
		case <-time.After(delay):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// Failing fails one of n calls, which the runtime does not get.
func Failing(n int64, code codes.Code) Fault {
	every := oneOf(n)
	return Fault{Before: func(_ context.Context, c criproxy.Call) error {
		if c.Method() != events && every() {
			return status.Error(code, "injected fault")
		}
		return nil
	}}
}

// LosingAnswers fails one of n calls after the runtime has executed it.
func LosingAnswers(n int64) Fault {
	every := oneOf(n)
	return Fault{Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		if c.Method() != events && every() {
			return nil, status.Error(codes.Unavailable, "injected fault: the answer is lost")
		}
		return [][]byte{response}, nil
	}}
}

// Truncating cuts responses in half.
func Truncating(n int64) Fault {
	every := oneOf(n)
	return Fault{Answer: func(_ context.Context, _ criproxy.Call, response []byte) ([][]byte, error) {
		if every() {
			response = response[:len(response)/2]
		}
		return [][]byte{response}, nil
	}}
}

func oneOf(n int64) func() bool {
	var calls atomic.Int64
	return func() bool { return calls.Add(1)%n == 0 }
}

// StallingEvents accepts the event stream and sends nothing.
func StallingEvents() Fault {
	return Fault{Answer: func(ctx context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		if c.Method() != events {
			return [][]byte{response}, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
}

// DroppingEvents loses every event and ends the stream.
func DroppingEvents() Fault {
	return Fault{Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		if c.Method() != events {
			return [][]byte{response}, nil
		}
		return nil, status.Error(codes.Unavailable, "injected fault: the stream is cut")
	}}
}

// replayed is the number of earlier events that follow each event.
const replayed = 20

// ReplayingEvents sends each event twice, and then the last ones before it again.
func ReplayingEvents() Fault {
	history := make(chan [][]byte, 1)
	history <- nil
	return Fault{Answer: func(_ context.Context, c criproxy.Call, response []byte) ([][]byte, error) {
		if c.Method() != events {
			return [][]byte{response}, nil
		}
		earlier := <-history
		sent := append([][]byte{response, response}, earlier...)
		earlier = append(earlier, response)
		history <- slices.Clone(earlier[max(0, len(earlier)-replayed):])
		return sent, nil
	}}
}

// Methods matches calls of the named methods.
func Methods(names ...string) func(criproxy.Call) bool {
	return func(c criproxy.Call) bool { return slices.Contains(names, c.Method()) }
}
