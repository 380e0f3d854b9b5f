package cri

import (
	"context"
	"errors"
	"io"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errStreamEnded: the runtime closed the stream, as it does when it stops.
var errStreamEnded = errors.New("the runtime ended the stream")

// IsStreamEnded reports whether the runtime closed the stream without an error.
func IsStreamEnded(err error) bool { return errors.Is(err, errStreamEnded) }

// Events calls handle for each event of the runtime, one at a time, until ctx is done or the
// stream fails; it never returns nil. A runtime may first deliver events that it buffered while
// there was no subscriber.
func (c *Client) Events(ctx context.Context, handle func(*runtimeapi.ContainerEventResponse)) (err error) {
	began := c.clock.Now()
	defer func() { c.calls.Done("GetContainerEvents", c.clock.Since(began), err) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return failed(err, "subscribe to container events")
	}
	c.subscriptions.Inc()
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = errStreamEnded
		}
		if err != nil {
			return failed(err, "receive container event")
		}
		handle(event)
	}
}
