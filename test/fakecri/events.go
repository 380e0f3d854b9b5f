package fakecri

import (
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Events is the runtime's event stream. Events without a subscriber are kept for the next one.
type Events struct {
	mu      sync.Mutex
	waiting []*runtimeapi.ContainerEventResponse // not yet delivered
	held    bool
	drop    int
	repeat  bool
	streams []*stream
}

type stream struct {
	wake   chan struct{}
	broken chan struct{}
	queue  []*runtimeapi.ContainerEventResponse // guarded by Events.mu
}

func newEvents() *Events { return &Events{} }

// Hold delays events until Release.
func (e *Events) Hold() { e.change(func() { e.held = true }) }

// Release delivers the held events, in order.
func (e *Events) Release() { e.change(func() { e.held = false }) }

// Drop discards the next n events.
func (e *Events) Drop(n int) { e.change(func() { e.drop = n }) }

// Repeat delivers every later event twice.
func (e *Events) Repeat() { e.change(func() { e.repeat = true }) }

// Break closes all streams. Clients may subscribe again.
func (e *Events) Break() {
	e.change(func() {
		for _, s := range e.streams {
			close(s.broken)
		}
		e.streams = nil
	})
}

// Subscribers returns the number of open streams.
func (e *Events) Subscribers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.streams)
}

// Emit sends an event.
func (e *Events) Emit(event *runtimeapi.ContainerEventResponse) {
	e.change(func() {
		if e.drop > 0 {
			e.drop--
			return
		}
		e.waiting = append(e.waiting, event)
		if e.repeat {
			e.waiting = append(e.waiting, proto.Clone(event).(*runtimeapi.ContainerEventResponse))
		}
	})
}

// change runs f under the lock and then delivers what can be delivered.
func (e *Events) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	if e.held || len(e.streams) == 0 || len(e.waiting) == 0 {
		return
	}
	for _, s := range e.streams {
		s.queue = append(s.queue, e.waiting...)
		select {
		case s.wake <- struct{}{}:
		default: // already signalled
		}
	}
	e.waiting = nil
}

func (e *Events) take(s *stream) []*runtimeapi.ContainerEventResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := s.queue
	s.queue = nil
	return taken
}

func (e *Events) leave(s *stream) {
	e.change(func() { e.streams = slices.DeleteFunc(e.streams, func(o *stream) bool { return o == s }) })
}

// GetContainerEvents serves one subscriber.
func (s *Server) GetContainerEvents(_ *runtimeapi.GetEventsRequest, out grpc.ServerStreamingServer[runtimeapi.ContainerEventResponse]) error {
	if s.noEvents {
		return status.Error(codes.Unimplemented, "container events are not implemented")
	}
	mine := &stream{wake: make(chan struct{}, 1), broken: make(chan struct{})}
	s.Events.change(func() { s.Events.streams = append(s.Events.streams, mine) })
	defer s.Events.leave(mine)
	for {
		select {
		case <-out.Context().Done():
			return out.Context().Err()
		case <-mine.broken:
			return nil
		case <-mine.wake:
		}
		for _, event := range s.Events.take(mine) {
			if err := out.Send(event); err != nil {
				return err
			}
		}
	}
}

// emit sends an event about the sandbox or one of its containers; the caller holds mu. As in
// containerd the event has the sandbox and its containers, and no containers if one was removed.
func (s *Server) emit(kind runtimeapi.ContainerEventType, id, sandboxID string) {
	event := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: s.now().UnixNano()}
	if sandbox := s.sandboxes[sandboxID]; sandbox != nil {
		event.PodSandboxStatus = proto.Clone(sandbox).(*runtimeapi.PodSandboxStatus)
	}
	if kind != runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		for _, c := range s.sorted() {
			if c.sandbox == sandboxID {
				event.ContainersStatuses = append(event.ContainersStatuses, proto.Clone(c.status).(*runtimeapi.ContainerStatus))
			}
		}
	}
	s.Events.Emit(event)
}
