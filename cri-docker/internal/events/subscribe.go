package events

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// client is a stream of events. Every client gets all of them.
type client struct {
	events chan *runtimeapi.ContainerEventResponse
	ended  chan error // gets the reason, once
}

// Subscribe calls send for each event until ctx ends, send fails or events are lost. It calls subscribed when
// no later event is missed.
func (e *Events) Subscribe(ctx context.Context, subscribed func() error, send func(*runtimeapi.ContainerEventResponse) error) error {
	c := &client{events: make(chan *runtimeapi.ContainerEventResponse, queue), ended: make(chan error, 1)}
	e.mu.Lock()
	if e.clients == nil {
		e.clients = map[*client]bool{}
	}
	e.clients[c] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.clients, c)
	}()
	if err := subscribed(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.ended:
			return err
		case event := <-c.events:
			if err := send(event); err != nil {
				return err
			}
		}
	}
}

func (e *Events) hasClients() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.clients) > 0
}

func (e *Events) publish(event *runtimeapi.ContainerEventResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.clients {
		select {
		case c.events <- event:
		default:
			c.ended <- ErrSlow
			delete(e.clients, c)
		}
	}
}

func (e *Events) endAll(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.clients {
		c.ended <- err
		delete(e.clients, c)
	}
}
