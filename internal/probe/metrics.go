package probe

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// metrics counts how probes went, from a pod's first asking until it is forgotten. Askings
// out of turn that failed are left out, as they are everywhere else.
type metrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	// counted are the pods that have series. Guarded by the prober's lock.
	counted map[types.UID]pod.Ref
}

var outcomes = map[pod.Result]string{pod.Passed: "successful", pod.Failed: "failed", pod.Unsure: "unknown"}

func newMetrics() metrics {
	return metrics{
		counted: map[types.UID]pod.Ref{},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prober_probe_total",
			Help: "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.",
		}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "prober_probe_duration_seconds",
			Help:    "[ALPHA] Duration in seconds for a probe response.",
			Buckets: []float64{math.Inf(1)}, // the reference has no others
		}, []string{"probe_type", "container", "pod", "namespace"}),
	}
}

// Describe and Collect make a Prober a collector of metrics.
func (p *Prober) Describe(out chan<- *prometheus.Desc) {
	p.metrics.total.Describe(out)
	p.metrics.duration.Describe(out)
}

func (p *Prober) Collect(out chan<- prometheus.Metric) {
	p.metrics.total.Collect(out)
	p.metrics.duration.Collect(out)
}

// count takes down one asking. Called under the lock.
func (m metrics) count(a asked, answer Answer, took time.Duration) {
	if a.outOfTurn && answer.Result != pod.Passed {
		return
	}
	kind, container, of := a.state.kind.String(), a.target.Container.Name, a.target.Pod
	m.counted[of.UID] = pod.RefOf(of)
	m.total.WithLabelValues(kind, outcomes[answer.Result], container, of.Name, of.Namespace, string(of.UID)).Inc()
	m.duration.WithLabelValues(kind, container, of.Name, of.Namespace).Observe(took.Seconds())
}

// forget drops the series of a pod. Durations do not name the pod's UID: those of a
// successor of the same name begin anew. Called under the lock.
func (m metrics) forget(uid types.UID) {
	ref, ok := m.counted[uid]
	if !ok {
		return
	}
	delete(m.counted, uid)
	m.total.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
	m.duration.DeletePartialMatch(prometheus.Labels{"pod": ref.Name, "namespace": ref.Namespace})
}
