package probe

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// metrics counts the outcomes of probes, from a pod's first run until Forget. It leaves out
// early runs that failed, as events and thresholds do.
type metrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	// podsWithSeries is guarded by the Prober's mu.
	podsWithSeries map[types.UID]pod.Ref
}

var resultLabels = map[pod.Result]string{pod.Passed: "successful", pod.Failed: "failed", pod.ProbeUnknown: "unknown"}

func newMetrics() metrics {
	return metrics{
		podsWithSeries: map[types.UID]pod.Ref{},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prober_probe_total",
			Help: "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result.",
		}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "prober_probe_duration_seconds",
			Help:    "[ALPHA] Duration in seconds for a probe response.",
			Buckets: []float64{math.Inf(1)}, // the reference kubelet has no others
		}, []string{"probe_type", "container", "pod", "namespace"}),
	}
}

// Describe and Collect make the Prober a Prometheus collector.
func (p *Prober) Describe(out chan<- *prometheus.Desc) {
	p.metrics.total.Describe(out)
	p.metrics.duration.Describe(out)
}

func (p *Prober) Collect(out chan<- prometheus.Metric) {
	p.metrics.total.Collect(out)
	p.metrics.duration.Collect(out)
}

// count counts one run. The caller holds mu.
func (m metrics) count(a probeRun, outcome Outcome, took time.Duration) {
	if a.early && outcome.Result != pod.Passed {
		return
	}
	kind, container, of := a.state.kind.String(), a.target.Container.Name, a.target.Pod
	m.podsWithSeries[of.UID] = pod.RefOf(of)
	m.total.WithLabelValues(kind, resultLabels[outcome.Result], container, of.Name, of.Namespace, string(of.UID)).Inc()
	m.duration.WithLabelValues(kind, container, of.Name, of.Namespace).Observe(took.Seconds())
}

// forget deletes the series of a pod. Durations have no pod_uid label, so this also resets those
// of a successor with the same name. The caller holds mu.
func (m metrics) forget(uid types.UID) {
	ref, ok := m.podsWithSeries[uid]
	if !ok {
		return
	}
	delete(m.podsWithSeries, uid)
	m.total.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
	m.duration.DeletePartialMatch(prometheus.Labels{"pod": ref.Name, "namespace": ref.Namespace})
}
