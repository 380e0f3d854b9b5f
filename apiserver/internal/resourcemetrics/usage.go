// Package resourcemetrics serves metrics.k8s.io from the statistics of the kubelet, in place of metrics-server.
// Nothing is read unless someone asks.
package resourcemetrics

import (
	"context"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
)

const (
	// minWindow is the shortest time to compute CPU usage over. The first answer takes that long.
	minWindow = time.Second
	// maxWindow is the longest. It is that of metrics-server, with some tolerance.
	maxWindow = 20 * time.Second
)

// Reader reads the statistics of a node.
type Reader interface {
	read(ctx context.Context, node *corev1.Node) (*stats.Summary, error)
}

// Usage computes what the node and its containers use.
type Usage struct {
	reader Reader
	clock  clock.Clock

	mu sync.Mutex
	// from is what usage is computed against; last replaces it when it gets too old.
	from, last sample
}

// NewUsage returns the usage of what a reader reads.
func NewUsage(reader Reader, clock clock.Clock) *Usage { return &Usage{reader: reader, clock: clock} }

// sample is what had been used at a time.
type sample struct {
	at         time.Time // on the monotonic clock
	node       amount
	containers map[types.NamespacedName]map[string]amount
}

// amount is the use of CPU so far, and of memory now. Its times are those of the kubelet: whole seconds of the wall clock.
type amount struct {
	at, began time.Time
	cpu       uint64 // nanoseconds
	memory    uint64 // bytes
}

// used is the use of CPU and memory in a window up to a time.
type used struct {
	at                time.Time
	window            time.Duration
	nanoCores, memory uint64
}

// report is what the node and the containers of its pods use.
type report struct {
	node       used
	containers map[types.NamespacedName]map[string]used
}

// get reads the statistics once if those of the last seconds are known, and otherwise twice.
func (u *Usage) get(ctx context.Context, node *corev1.Node) (*report, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, err := u.sample(ctx, node)
	if err != nil {
		return nil, err
	}
	if age := now.at.Sub(u.last.at); age >= minWindow && age <= maxWindow {
		u.from = u.last
	} else if age = now.at.Sub(u.from.at); age < minWindow || age > maxWindow {
		u.from = now
		timer := u.clock.NewTimer(minWindow)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if now, err = u.sample(ctx, node); err != nil {
			return nil, err
		}
	}
	u.last = now
	return now.since(u.from), nil
}

// sample reads the statistics.
func (u *Usage) sample(ctx context.Context, node *corev1.Node) (sample, error) {
	summary, err := u.reader.read(ctx, node)
	if err != nil {
		return sample{}, err
	}
	s := sample{at: u.clock.Now(), containers: map[types.NamespacedName]map[string]amount{}}
	s.node, _ = amountOf(summary.Node.CPU, summary.Node.Memory, time.Time{})
	for _, pod := range summary.Pods {
		containers := map[string]amount{}
		for _, c := range pod.Containers {
			if a, ok := amountOf(c.CPU, c.Memory, c.StartTime.Time); ok {
				containers[c.Name] = a
			}
		}
		if len(containers) > 0 {
			s.containers[types.NamespacedName{Namespace: pod.PodRef.Namespace, Name: pod.PodRef.Name}] = containers
		}
	}
	return s, nil
}

func amountOf(cpu *stats.CPUStats, memory *stats.MemoryStats, began time.Time) (amount, bool) {
	if cpu == nil || cpu.UsageCoreNanoSeconds == nil || memory == nil || memory.WorkingSetBytes == nil {
		return amount{}, false
	}
	return amount{at: cpu.Time.Time, began: began, cpu: *cpu.UsageCoreNanoSeconds, memory: *memory.WorkingSetBytes}, true
}

// since computes the use between two samples. Containers whose use is not known are left out.
func (s sample) since(from sample) *report {
	window := s.at.Sub(from.at)
	r := &report{containers: map[types.NamespacedName]map[string]used{}}
	r.node, _ = s.node.since(from.node, window)
	for pod, containers := range s.containers {
		all := map[string]used{}
		for name, now := range containers {
			if u, known := now.since(from.containers[pod][name], window); known {
				all[name] = u
			}
		}
		if len(all) > 0 {
			r.containers[pod] = all
		}
	}
	return r
}

// since computes the use since an earlier amount, which was read a window ago, or since the container began if it
// began later. known is false if it has just begun, or if the wall clock was set since.
func (a amount) since(from amount, window time.Duration) (u used, known bool) {
	if from.at.IsZero() || !from.began.Equal(a.began) || from.cpu > a.cpu {
		age := a.at.Sub(a.began)
		if age > window+time.Second {
			return used{}, false
		}
		from, window = amount{}, age
	}
	if window <= 0 {
		return used{}, false
	}
	cpu := math.Round(float64(a.cpu-from.cpu) / window.Seconds())
	return used{at: a.at, memory: a.memory, window: window, nanoCores: uint64(cpu)}, true
}
