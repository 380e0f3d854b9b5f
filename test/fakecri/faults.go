package fakecri

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Call is a request that the runtime received.
type Call struct {
	Method  string // as "RunPodSandbox"
	Request proto.Message
	At      time.Time
}

// Fault changes the response of a method: first Inspect, then Delay, then Hang or Err.
type Fault struct {
	// Inspect is called with the call's context, for example to check its deadline.
	Inspect func(context.Context)
	// Err is returned instead of a response; use status.Error.
	Err error
	// Delay is how long the call takes before anything else happens.
	Delay time.Duration
	// Hang blocks the call until the caller cancels it or the runtime stops.
	Hang bool
	// Times is the number of affected calls; zero means all until ClearFault.
	Times int
	// Match limits the fault to some requests; nil means all.
	Match func(request any) bool
}

// Inject sets the fault of a method, such as "PullImage". It replaces an earlier one.
func (s *Server) Inject(method string, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault.Times == 0 {
		fault.Times = -1
	}
	s.faults[method] = &fault
}

// Interceptor handles a call. It decides whether and when the runtime executes it, and what the
// response is.
type Interceptor func(ctx context.Context, call Call, act func() (any, error)) (answer any, err error)

// SetInterceptor sets the interceptor of unary calls; nil removes it.
func (s *Server) SetInterceptor(interceptor Interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interceptor = interceptor
}

// ClearFault removes the method's fault. Calls that already hang keep hanging.
func (s *Server) ClearFault(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults, method)
}

// Calls lists the calls in the order in which they were received.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Count returns how often a method was called.
func (s *Server) Count(method string) int {
	n := 0
	for _, call := range s.Calls() {
		if call.Method == method {
			n++
		}
	}
	return n
}

// ResetCalls clears the list of calls.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Server) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	call, fault, matched := s.record(path.Base(info.FullMethod), request)
	act := func() (any, error) {
		if matched {
			if err := fault.apply(ctx); err != nil {
				return nil, err
			}
		}
		return handle(ctx, request)
	}
	s.mu.Lock()
	interceptor := s.interceptor
	s.mu.Unlock()
	if interceptor != nil {
		return interceptor(ctx, call, act)
	}
	return act()
}

func (s *Server) interceptStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	_, fault, matched := s.record(path.Base(info.FullMethod), nil)
	if matched {
		if err := fault.apply(stream.Context()); err != nil {
			return err
		}
	}
	return handle(server, stream)
}

// record adds the call to the list and returns its fault, if there is one.
func (s *Server) record(method string, request any) (call Call, fault Fault, matched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call = Call{Method: method, At: s.now()}
	if message, ok := request.(proto.Message); ok {
		call.Request = proto.Clone(message)
	}
	if !s.forgetCalls {
		s.calls = append(s.calls, call)
	}
	f := s.faults[method]
	if f == nil || f.Times == 0 || (f.Match != nil && !f.Match(request)) {
		return call, Fault{}, false
	}
	f.Times--
	return call, *f, true
}

func (f Fault) apply(ctx context.Context) error {
	if f.Inspect != nil {
		f.Inspect(ctx)
		if ctx.Err() != nil { // Inspect blocked until the caller cancelled
			return ctx.Err()
		}
	}
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Err
}
