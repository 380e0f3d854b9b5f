package etcd

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc"
)

// Client returns a client that calls the member without a connection.
//
// All its watches share one stream to the member. That of etcd's own client in a process has no buffers: if the
// client sends a request while the member sends events, each may wait for the other, and from then on no watch
// gets an event. So requests are queued here.
func (m *Member) Client() *clientv3.Client {
	client := v3client.New(m.etcd.Server)
	watches := adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(m.etcd.Server))
	client.Watcher = oneStream{clientv3.NewWatchFromWatchClient(queuedWatches{watches}, client)}
	return client
}

// oneStream gives all watches the same kind of context, as etcd opens a stream for each kind. v3client does so, too.
type oneStream struct{ clientv3.Watcher }

func (w oneStream) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	return w.Watcher.Watch(unnamed{ctx}, key, options...)
}

// unnamed is a context that does not print its values.
type unnamed struct{ context.Context }

func (unnamed) String() string { return "watch" }

// queuedWatches opens streams whose Send does not block.
type queuedWatches struct{ pb.WatchClient }

func (q queuedWatches) Watch(ctx context.Context, options ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	inner, err := q.WatchClient.Watch(ctx, options...)
	if err != nil {
		return nil, err
	}
	stream := &queuedStream{Watch_WatchClient: inner, wake: make(chan struct{}, 1)}
	go stream.forward()
	return stream, nil
}

// queuedStream sends requests in their order from a goroutine, which ends with CloseSend or with the stream.
type queuedStream struct {
	pb.Watch_WatchClient
	wake chan struct{}

	mu     sync.Mutex
	queue  []*pb.WatchRequest
	closed bool
	failed error // of a send
}

// Send returns the error of an earlier request, if there was one.
func (s *queuedStream) Send(request *pb.WatchRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, request)
	s.notify()
	return s.failed
}

// CloseSend closes the stream for requests once those in the queue are sent.
func (s *queuedStream) CloseSend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.notify()
	return nil
}

func (s *queuedStream) notify() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

func (s *queuedStream) forward() {
	for {
		select {
		case <-s.wake:
		case <-s.Context().Done():
			return
		}
		s.mu.Lock()
		requests, closed := s.queue, s.closed
		s.queue = nil
		s.mu.Unlock()
		for _, request := range requests {
			if err := s.Watch_WatchClient.Send(request); err != nil {
				s.mu.Lock()
				s.failed = err
				s.mu.Unlock()
				return
			}
		}
		if closed {
			_ = s.Watch_WatchClient.CloseSend() // never fails
			return
		}
	}
}
