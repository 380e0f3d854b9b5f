// Package events makes CRI events, which carry the whole status of a pod, from those of Docker.
package events

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	dockerevents "github.com/moby/moby/api/types/events"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/labels"
	"swiftlet/cri-docker/internal/sandbox"
)

const (
	reconnectAfter = time.Second
	workers        = 8    // events of one pod are handled in order by the same worker
	queue          = 1024 // events per worker and per client
)

// ErrSlow ends the stream of a client that does not read. It has to list everything again.
var ErrSlow = errors.New("events were lost: the client reads too slowly")

// Events reads Docker's events and passes them on to clients.
type Events struct {
	Engine     *engine.Engine
	Containers *container.Containers
	Sandboxes  *sandbox.Sandboxes
	Log        *slog.Logger
	// Connected is called each time when Docker is reached, before its events are read.
	Connected func(context.Context)

	mu      sync.Mutex
	clients map[*client]bool
}

// Run reads events until ctx ends. After an interruption it goes on where it was.
func (e *Events) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	queues := make([]chan dockerevents.Message, workers)
	for i := range queues {
		queues[i] = make(chan dockerevents.Message, queue)
		group.Go(func() { e.work(ctx, queues[i]) })
	}
	last := time.Now()
	for ctx.Err() == nil {
		e.Connected(ctx)
		err := e.Engine.Events(ctx, labels.Kind, last, func(m dockerevents.Message) {
			at := time.Unix(0, m.TimeNano)
			if at.After(last) {
				last = at // after a reconnection the last one is repeated; events may be
			}
			select {
			case queues[worker(m)] <- m:
			case <-ctx.Done():
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		e.Log.Warn("lost Docker's events, connecting again", "err", err)
		e.endAll(err) // a restarted engine has forgotten its events: clients list again
		select {
		case <-ctx.Done():
		case <-time.After(reconnectAfter):
		}
	}
	return nil
}

func worker(m dockerevents.Message) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(sandboxOf(m))) // never fails
	return int(h.Sum32() % workers)
}

func sandboxOf(m dockerevents.Message) string {
	if id := m.Actor.Attributes[labels.SandboxID]; id != "" {
		return id
	}
	return m.Actor.ID
}

func (e *Events) work(ctx context.Context, queue <-chan dockerevents.Message) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-queue:
			e.handle(ctx, m)
		}
	}
}

var types = map[dockerevents.Action]runtimeapi.ContainerEventType{
	dockerevents.ActionCreate:  runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT,
	dockerevents.ActionStart:   runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
	dockerevents.ActionDie:     runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
	dockerevents.ActionDestroy: runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT,
}

// handle passes one event on.
func (e *Events) handle(ctx context.Context, m dockerevents.Message) {
	kind, ok := types[m.Action]
	if !ok {
		return
	}
	isPod := m.Actor.Attributes[labels.Kind] == labels.KindOfPod
	if isPod && (m.Action == dockerevents.ActionCreate || m.Action == dockerevents.ActionStart) {
		return // SandboxStarted follows, when the network is there
	}
	if m.Action == dockerevents.ActionDie && !isPod {
		// Completes the log, also without a client.
		if _, err := e.Containers.Status(ctx, m.Actor.ID); err != nil && !engine.NotFound(err) {
			e.Log.Warn("failed to read exited container", "container", m.Actor.ID, "err", err)
		}
	}
	if m.Action == dockerevents.ActionDestroy && isPod {
		// RemovePodSandbox has done this before; `docker rm` has not.
		if err := e.Sandboxes.Network.Release(ctx, m.Actor.ID); err != nil {
			e.Log.Warn("failed to release network of removed sandbox", "sandbox", m.Actor.ID, "err", err)
		}
	}
	if m.Action == dockerevents.ActionDestroy && !isPod {
		e.Containers.Logs.Remove(m.Actor.ID) // as above
	}
	e.send(ctx, m.Actor.ID, sandboxOf(m), kind, m.TimeNano, m.Actor.Attributes)
}

// SandboxStarted reports a sandbox whose network is attached. Docker reports the pause container, which is
// earlier: a client would take the sandbox for one that has ended.
func (e *Events) SandboxStarted(ctx context.Context, id string) {
	e.send(ctx, id, id, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, time.Now().UnixNano(), nil)
	e.send(ctx, id, id, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, time.Now().UnixNano(), nil)
}

func (e *Events) send(ctx context.Context, id, sandboxID string, kind runtimeapi.ContainerEventType, at int64, attributes map[string]string) {
	if !e.hasClients() {
		return
	}
	event := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: at}
	var err error
	event.PodSandboxStatus, event.ContainersStatuses, err = e.pod(ctx, sandboxID)
	if engine.NotFound(err) && id == sandboxID {
		event.PodSandboxStatus = removed(id, attributes)
		err = nil
	}
	if engine.NotFound(err) {
		return // the pod is gone; its own event says so
	}
	if err != nil {
		// A client that misses an event would wait for its next list: end the streams instead.
		e.Log.Error("failed to read a pod for its event", "sandbox", sandboxID, "err", err)
		e.endAll(err)
		return
	}
	e.publish(event)
}

// pod reads the status of a sandbox and its containers.
func (e *Events) pod(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, []*runtimeapi.ContainerStatus, error) {
	p, err := e.Sandboxes.Status(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	all, err := Members(ctx, e.Containers, p.GetId())
	return p, all, err
}

// Members reads the status of all containers of a sandbox.
func Members(ctx context.Context, containers *container.Containers, id string) ([]*runtimeapi.ContainerStatus, error) {
	found, err := containers.List(ctx, &runtimeapi.ContainerFilter{PodSandboxId: id})
	if err != nil {
		return nil, err
	}
	var all []*runtimeapi.ContainerStatus
	for _, c := range found {
		s, err := containers.Status(ctx, c.GetId())
		if engine.NotFound(err) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// removed is the status of a sandbox that does not exist any more, from the labels in its event.
func removed(id string, attributes map[string]string) *runtimeapi.PodSandboxStatus {
	p := &runtimeapi.PodSandboxStatus{Id: id, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}
	if l, err := labels.DecodeSandbox(attributes["name"], attributes); err == nil {
		p.Metadata, p.Labels, p.Annotations, p.RuntimeHandler = l.Config.GetMetadata(), l.Config.GetLabels(), l.Config.GetAnnotations(), l.Handler
	}
	return p
}
