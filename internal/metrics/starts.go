package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// starts times how long pods take from their creation until the API server shows all of
// their containers running: the pod startup latency of the Kubernetes scalability goals.
type starts struct {
	clock        clock.PassiveClock
	total, sli   prometheus.Observer
	firstNetwork prometheus.Gauge

	mu         sync.Mutex
	pods       map[types.UID]*podStart
	hadNetwork bool // the first pod with a network of its own was timed
}

// podStart is one pod on its way up.
type podStart struct {
	pulling int // containers that wait for their image
	since   time.Time
	pulled  time.Duration // for how long at least one did
}

func (m *Metrics) newStarts() *starts {
	return &starts{
		clock: m.clock,
		// These two have labels, of which there are none: they are not shown before the first.
		total:        lazily{m.histograms(kubelet+"pod_start_total_duration_seconds", "From a pod's creation until it is seen to run.", podStarts)},
		sli:          lazily{m.histograms(kubelet+"pod_start_sli_duration_seconds", "From a pod's creation until it is seen to run, without the time for images and init containers, for pods without lasting volumes.", podStarts)},
		firstNetwork: m.gauge(kubelet+"first_network_pod_start_sli_duration_seconds", "The same of the first pod with a network of its own."),
		pods:         map[types.UID]*podStart{},
	}
}

// lazily shows a histogram from its first observation on.
type lazily struct{ *prometheus.HistogramVec }

func (l lazily) Observe(v float64) { l.WithLabelValues().Observe(v) }

// Seen takes each change in what is wanted, with what the API server shows of the pod.
func (m *Metrics) Seen(c pod.Change) { m.starts.seen(c) }

func (s *starts) seen(c pod.Change) {
	shown := c.Pod
	if pod.IsStatic(c.Pod) {
		if shown = c.Mirror; shown == nil {
			shown = c.Pod
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start, known := s.pods[c.Pod.UID]
	switch {
	case c.Op == pod.Remove, pod.IsTerminal(shown.Status.Phase), wasUnschedulable(shown):
		delete(s.pods, c.Pod.UID)
	case !known && c.Op == pod.Add && shown.Status.StartTime == nil:
		s.pods[c.Pod.UID] = &podStart{}
	case known && isUp(&shown.Status):
		delete(s.pods, c.Pod.UID)
		s.observe(shown, start)
	}
}

// observe notes the start of a pod that was just seen to run.
func (s *starts) observe(p *v1.Pod, start *podStart) {
	took := s.clock.Since(p.CreationTimestamp.Time)
	s.total.Observe(took.Seconds())
	if hasLastingVolume(p) {
		return
	}
	took -= start.pulled + initTime(&p.Status)
	s.sli.Observe(took.Seconds())
	if !p.Spec.HostNetwork && !s.hadNetwork {
		s.hadNetwork = true
		s.firstNetwork.Set(took.Seconds())
	}
}

// pulling notes that a container of the pod waits for its image, until done is called.
func (s *starts) pulling(uid types.UID) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.pods[uid]
	if start == nil {
		return func() {}
	}
	if start.pulling == 0 {
		start.since = s.clock.Now()
	}
	start.pulling++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if start.pulling--; start.pulling == 0 {
			start.pulled += s.clock.Since(start.since)
		}
	}
}

// isUp reports whether the status shows all containers running.
func isUp(s *v1.PodStatus) bool {
	for _, c := range s.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}

// initTime is how long the init containers ran.
func initTime(s *v1.PodStatus) time.Duration {
	var sum time.Duration
	for _, c := range s.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && end.FinishedAt.After(end.StartedAt.Time) {
			sum += end.FinishedAt.Sub(end.StartedAt.Time)
		}
	}
	return sum
}

// wasUnschedulable: such a pod waited for others, which says nothing about this node.
func wasUnschedulable(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return true
		}
	}
	return false
}

// hasLastingVolume reports whether the pod uses storage that outlives it, or the host's:
// how long that takes to appear is not the node's doing.
func hasLastingVolume(p *v1.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if v.Secret == nil && v.ConfigMap == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.Projected == nil {
			return true
		}
	}
	return false
}
