package fakecri

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Call is one request the runtime got.
type Call struct {
	Method  string // as "RunPodSandbox"
	Request proto.Message
	At      time.Time
}

// Fault changes the answer of one method. See comes first, then Delay, then Hang or Err.
type Fault struct {
	// See is shown the call's context, for instance its deadline.
	See func(context.Context)
	// Err is returned instead of acting; make one with status.Error.
	Err error
	// Delay passes before anything else happens.
	Delay time.Duration
	// Hang keeps the call until its caller gives up or the runtime stops.
	Hang bool
	// Times is how many calls are hit; zero is all until Heal.
	Times int
	// Match limits the fault to some requests; nil is all.
	Match func(request any) bool
}

// Inject makes the method (as "PullImage") fail from now on; it replaces an earlier fault.
func (s *Server) Inject(method string, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault.Times == 0 {
		fault.Times = -1
	}
	s.faults[method] = &fault
}

// Between stands between the wire and the runtime: it is given each call and decides
// whether and when the runtime acts on it, and what is answered.
type Between func(ctx context.Context, call Call, act func() (any, error)) (answer any, err error)

// Stand puts something between the wire and the runtime; nil takes it away. Streams are
// not its business.
func (s *Server) Stand(between Between) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.between = between
}

// Heal ends the method's fault. Calls that hang already keep hanging.
func (s *Server) Heal(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults, method)
}

// Calls lists what the runtime was asked, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Count is how often a method was called.
func (s *Server) Count(method string) int {
	n := 0
	for _, call := range s.Calls() {
		if call.Method == method {
			n++
		}
	}
	return n
}

// ForgetCalls empties the list of calls.
func (s *Server) ForgetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

func (s *Server) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	call, fault, hit := s.record(path.Base(info.FullMethod), request)
	act := func() (any, error) {
		if hit {
			if err := fault.apply(ctx); err != nil {
				return nil, err
			}
		}
		return handle(ctx, request)
	}
	s.mu.Lock()
	between := s.between
	s.mu.Unlock()
	if between != nil {
		return between(ctx, call, act)
	}
	return act()
}

func (s *Server) interceptStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	_, fault, hit := s.record(path.Base(info.FullMethod), nil)
	if hit {
		if err := fault.apply(stream.Context()); err != nil {
			return err
		}
	}
	return handle(server, stream)
}

// record notes the call and says which fault, if any, it runs into.
func (s *Server) record(method string, request any) (call Call, fault Fault, hit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call = Call{Method: method, At: s.now()}
	if message, ok := request.(proto.Message); ok {
		call.Request = proto.Clone(message)
	}
	s.calls = append(s.calls, call)
	f := s.faults[method]
	if f == nil || f.Times == 0 || (f.Match != nil && !f.Match(request)) {
		return call, Fault{}, false
	}
	f.Times--
	return call, *f, true
}

func (f Fault) apply(ctx context.Context) error {
	if f.See != nil {
		f.See(ctx)
		if ctx.Err() != nil { // it waited until the caller gave up
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
