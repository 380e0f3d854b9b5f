package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Events calls handle for each event of containers with the label, beginning with those since then (now, if
// it is zero). It returns when the stream ends, always with an error.
func (e *Engine) Events(ctx context.Context, label string, since time.Time, handle func(events.Message)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the client's goroutine
	o := client.EventsListOptions{Filters: make(client.Filters).Add("type", string(events.ContainerEventType)).Add("label", label).
		Add("event", "create", "start", "die", "oom", "destroy")}
	if !since.IsZero() {
		o.Since = fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())
	}
	stream := e.api.Events(ctx, o)
	for {
		select {
		case message := <-stream.Messages:
			handle(message)
		case err := <-stream.Err:
			return fmt.Errorf("read events of Docker: %w", err)
		}
	}
}
