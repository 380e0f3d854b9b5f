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

// slack is how far a mark may be from where it should be: the part of memory that is idle
// changes all the time.
const slack = 1 << 20

// usageAlarm rings by v1's thresholds on memory.usage_in_bytes.
type usageAlarm struct {
	node, pods string // directories
	rings      notify.Signal

	mu    sync.Mutex
	armed []armedMark
	ended bool
	waits sync.WaitGroup
}

// armedMark is a mark that the kernel watches. It is closed to end that.
type armedMark struct {
	Mark
	event *os.File
}

func newUsageAlarm(node, pods string) *usageAlarm {
	return &usageAlarm{node: node, pods: pods, rings: notify.New()}
}

func (a *usageAlarm) Set(marks []Mark) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	var errs []error
	var next []armedMark
	for _, m := range marks {
		if kept := a.take(m); kept != nil {
			next = append(next, *kept)
			continue
		}
		event, err := a.arm(m)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		next = append(next, armedMark{m, event})
	}
	a.disarm()
	a.armed = next
	return errors.Join(errs...)
}

// take finds a mark that is near enough, and takes it out of the list. Called under the lock.
func (a *usageAlarm) take(m Mark) *armedMark {
	for i, is := range a.armed {
		if is.Pods == m.Pods && max(is.Bytes, m.Bytes)-min(is.Bytes, m.Bytes) <= slack {
			a.armed = append(a.armed[:i:i], a.armed[i+1:]...)
			return &is
		}
	}
	return nil
}

// disarm ends all marks in the list. Called under the lock.
func (a *usageAlarm) disarm() {
	for _, m := range a.armed {
		m.event.Close()
	}
	a.armed = nil
}

// arm has the kernel watch a mark, and waits for it in a goroutine. Called under the lock.
func (a *usageAlarm) arm(m Mark) (*os.File, error) {
	dir := a.node
	if m.Pods {
		dir = a.pods
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	event := os.NewFile(uintptr(fd), "eventfd")
	if err := watchUsage(dir, fd, m.Bytes); err != nil {
		event.Close()
		return nil, fmt.Errorf("have the kernel watch memory: %w", err)
	}
	a.waits.Go(func() {
		if _, err := event.Read(make([]byte, 8)); err != nil {
			return // closed
		}
		a.spent(event)
		a.rings.Notify()
	})
	return event, nil
}

func watchUsage(dir string, event int, bytes uint64) error {
	usage, err := os.Open(dir + "/memory.usage_in_bytes")
	if err != nil {
		return err
	}
	defer usage.Close()
	order := fmt.Sprintf("%d %d %d", event, usage.Fd(), bytes)
	return os.WriteFile(dir+"/cgroup.event_control", []byte(order), 0)
}

// spent takes a mark out that has rung: a group that was removed rings too, and then the
// mark is dead.
func (a *usageAlarm) spent(event *os.File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	event.Close()
	for i, m := range a.armed {
		if m.event == event {
			a.armed = append(a.armed[:i:i], a.armed[i+1:]...)
			return
		}
	}
}

func (a *usageAlarm) Run(ctx context.Context, ring func()) error {
	defer func() {
		a.mu.Lock()
		a.ended = true
		a.disarm()
		a.mu.Unlock()
		a.waits.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.rings:
			ring()
		}
	}
}
