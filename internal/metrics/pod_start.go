package metrics

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// startTracker measures the time from the creation of a pod until the API server shows all of its
// containers running: the pod startup latency SLI of Kubernetes.
type startTracker struct {
	clock        clock.PassiveClock
	log          *slog.Logger
	total, sli   prometheus.Observer
	firstNetwork prometheus.Gauge

	mu         sync.Mutex
	pods       map[types.UID]*podStart
	hadNetwork bool // firstNetwork is set
}

// podStart is a pod that is starting.
type podStart struct {
	pulling int // number of containers that wait for their image
	since   time.Time
	pulled  time.Duration // time during which at least one container waited
}

func (m *Metrics) newStartTracker(log *slog.Logger) *startTracker {
	return &startTracker{
		clock: m.clock, log: log,
		// Vectors without labels are not exposed before the first observation.
		total:        lazyHistogram{m.histograms(kubelet+"pod_start_total_duration_seconds", "From a pod's creation until it is seen to run.", podStartBuckets)},
		sli:          lazyHistogram{m.histograms(kubelet+"pod_start_sli_duration_seconds", "From a pod's creation until it is seen to run, without the time for images and init containers, for pods without lasting volumes.", podStartBuckets)},
		firstNetwork: m.gauge(kubelet+"first_network_pod_start_sli_duration_seconds", "The same of the first pod with a network of its own."),
		pods:         map[types.UID]*podStart{},
	}
}

// lazyHistogram exposes a histogram from its first observation on.
type lazyHistogram struct{ *prometheus.HistogramVec }

func (l lazyHistogram) Observe(v float64) { l.WithLabelValues().Observe(v) }

// PodChanged records a pod change. The pod, or its mirror pod, has the status of the API server.
func (m *Metrics) PodChanged(c pod.Change) { m.starts.seen(c) }

func (s *startTracker) seen(c pod.Change) {
	reported := c.Pod
	if pod.IsStatic(c.Pod) {
		if reported = c.Mirror; reported == nil {
			reported = c.Pod
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start, known := s.pods[c.Pod.UID]
	switch {
	case c.Op == pod.Remove, pod.IsTerminal(reported.Status.Phase), wasUnschedulable(reported):
		delete(s.pods, c.Pod.UID)
	case !known && c.Op == pod.Add && reported.Status.StartTime == nil:
		s.pods[c.Pod.UID] = &podStart{}
	case known && allRunning(&reported.Status):
		delete(s.pods, c.Pod.UID)
		s.observe(reported, start)
	}
}

// observe records the start of a pod that has become running.
func (s *startTracker) observe(p *v1.Pod, start *podStart) {
	total, stateful := s.clock.Since(p.CreationTimestamp.Time), hasStatefulVolume(p)
	took := total - start.pulled - initTime(&p.Status)
	s.log.Info("Observed pod startup duration", pod.RefOf(p).Attr(), "podStartSLOduration", took.Seconds(), "podStartE2EDuration", total,
		"totalImagesPullingTime", start.pulled, "totalInitContainerRuntime", initTime(&p.Status), "isStatefulPod", stateful,
		"podCreationTimestamp", p.CreationTimestamp.Time)
	s.total.Observe(total.Seconds())
	if stateful {
		return
	}
	s.sli.Observe(took.Seconds())
	if !p.Spec.HostNetwork && !s.hadNetwork {
		s.hadNetwork = true
		s.firstNetwork.Set(took.Seconds())
	}
}

// pulling records that a container of the pod waits for its image until done is called.
func (s *startTracker) pulling(uid types.UID) (done func()) {
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

// allRunning reports whether the status shows all containers running.
func allRunning(s *v1.PodStatus) bool {
	for _, c := range s.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}

// initTime returns the total run time of the init containers.
func initTime(s *v1.PodStatus) time.Duration {
	var sum time.Duration
	for _, c := range s.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && end.FinishedAt.After(end.StartedAt.Time) {
			sum += end.FinishedAt.Sub(end.StartedAt.Time)
		}
	}
	return sum
}

// wasUnschedulable reports whether the pod waited for the scheduler, which is not startup latency
// of this node.
func wasUnschedulable(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return true
		}
	}
	return false
}

// hasStatefulVolume reports whether the pod uses storage that outlives it. The SLI excludes such
// pods, because the node does not control how long the storage takes.
func hasStatefulVolume(p *v1.Pod) bool {
	for i := range p.Spec.Volumes {
		if !pod.VolumeIsStateless(&p.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}
