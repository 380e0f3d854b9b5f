package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"swiftlet/internal/notify"
)

// tolerance is how far a registered threshold may be from the requested one before it is
// registered again. Thresholds include inactive memory, which changes all the time.
const tolerance = 1 << 20

// usageNotifier uses the thresholds of cgroup v1 on memory.usage_in_bytes.
type usageNotifier struct {
	node, pods string // directories
	crossed    notify.Signal

	mu         sync.Mutex
	registered []registeredThreshold
	stopped    bool
	waiters    sync.WaitGroup
}

// registeredThreshold is a threshold that the kernel watches until event is closed.
type registeredThreshold struct {
	MemoryThreshold
	event *os.File
}

func newUsageNotifier(node, pods string) *usageNotifier {
	return &usageNotifier{node: node, pods: pods, crossed: notify.New()}
}

func (n *usageNotifier) SetThresholds(thresholds []MemoryThreshold) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	var errs []error
	var next []registeredThreshold
	for _, t := range thresholds {
		if near := n.takeNear(t); near != nil {
			next = append(next, *near)
			continue
		}
		event, err := n.register(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		next = append(next, registeredThreshold{t, event})
	}
	n.unregisterAll()
	n.registered = next
	return errors.Join(errs...)
}

// takeNear removes a threshold within tolerance from the list and returns it; nil where there is
// none. The caller holds the lock.
func (n *usageNotifier) takeNear(t MemoryThreshold) *registeredThreshold {
	for i, r := range n.registered {
		if r.Pods == t.Pods && max(r.Bytes, t.Bytes)-min(r.Bytes, t.Bytes) <= tolerance {
			n.registered = append(n.registered[:i:i], n.registered[i+1:]...)
			return &r
		}
	}
	return nil
}

// unregisterAll unregisters the thresholds in the list. The caller holds the lock.
func (n *usageNotifier) unregisterAll() {
	for _, r := range n.registered {
		r.event.Close()
	}
	n.registered = nil
}

// register makes the kernel watch a threshold, and starts a goroutine that waits for it. The
// caller holds the lock.
func (n *usageNotifier) register(t MemoryThreshold) (*os.File, error) {
	dir := n.node
	if t.Pods {
		dir = n.pods
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	event := os.NewFile(uintptr(fd), "eventfd")
	if err := writeEventControl(dir, fd, t.Bytes); err != nil {
		event.Close()
		return nil, fmt.Errorf("register memory threshold: %w", err)
	}
	n.waiters.Go(func() {
		if _, err := event.Read(make([]byte, 8)); err != nil {
			return // closed
		}
		n.unregister(event)
		n.crossed.Notify()
	})
	return event, nil
}

func writeEventControl(dir string, event int, bytes uint64) error {
	usage, err := os.Open(dir + "/memory.usage_in_bytes")
	if err != nil {
		return err
	}
	defer usage.Close()
	registration := fmt.Sprintf("%d %d %d", event, usage.Fd(), bytes)
	return os.WriteFile(dir+"/cgroup.event_control", []byte(registration), 0)
}

// unregister removes a threshold after its event. The kernel also sends the event when the
// cgroup is removed, and no other after that.
func (n *usageNotifier) unregister(event *os.File) {
	n.mu.Lock()
	defer n.mu.Unlock()
	event.Close()
	for i, r := range n.registered {
		if r.event == event {
			n.registered = append(n.registered[:i:i], n.registered[i+1:]...)
			return
		}
	}
}

func (n *usageNotifier) Run(ctx context.Context, notify func()) error {
	defer func() {
		n.mu.Lock()
		n.stopped = true
		n.unregisterAll()
		n.mu.Unlock()
		n.waiters.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.crossed:
			notify()
		}
	}
}
