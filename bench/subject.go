package bench

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// subject is what is measured: bare CRI calls or a kubelet. The functions return when the effect is
// complete.
type subject interface {
	name() string
	node() *bed.Box
	// start starts pods at the same time and returns how long each took until it was ready.
	start(ctx context.Context, pods []*corev1.Pod) (spans, error)
	// delete deletes pods that start has started, at the same time.
	delete(ctx context.Context, pods []*corev1.Pod) (spans, error)
	// crash kills the process of the pod's only container and returns how long it took until the
	// container was running again.
	crash(ctx context.Context, pod *corev1.Pod) (time.Duration, error)
	// exec runs a command in the pod's first container.
	exec(ctx context.Context, pod *corev1.Pod, command ...string) (time.Duration, error)
	// clear removes all pods after an experiment has failed.
	clear(ctx context.Context) error
}

// spans are the durations of an operation on several pods.
type spans struct {
	each  []time.Duration
	total time.Duration // from the first begin to the last end
}

// stepLimit bounds every step of an experiment, also on a loaded machine.
const stepLimit = 5 * time.Minute

// together runs an operation on all pods at the same time.
func together(pods []*corev1.Pod, operation func(*corev1.Pod) (began, ended time.Time, err error)) (spans, error) {
	type result struct {
		began, ended time.Time
		err          error
	}
	results := make(chan result)
	first := time.Now()
	for _, p := range pods {
		go func() {
			began, ended, err := operation(p)
			results <- result{began, ended, err}
		}()
	}
	var all spans
	var failed error
	for range pods {
		r := <-results
		if r.err != nil {
			failed = r.err
			continue
		}
		all.each = append(all.each, r.ended.Sub(r.began))
		all.total = max(all.total, r.ended.Sub(first))
	}
	return all, failed
}
