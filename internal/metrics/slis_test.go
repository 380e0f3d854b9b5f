package metrics

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// text gathers metrics in the text format, without help.
func text(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range families {
		f.Help = nil
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestSLIs(t *testing.T) {
	s := NewSLIs(prometheus.NewGauge(prometheus.GaugeOpts{Name: "process_start_time_seconds"}))
	s.Checked("ping", "healthz", nil)
	s.Checked("syncloop", "healthz", nil)
	s.Checked("syncloop", "healthz", errors.New("stuck"))
	const checks = `# TYPE kubernetes_healthcheck gauge
kubernetes_healthcheck{name="ping",type="healthz"} 1
kubernetes_healthcheck{name="syncloop",type="healthz"} 0
# TYPE kubernetes_healthchecks_total counter
kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1
kubernetes_healthchecks_total{name="syncloop",status="error",type="healthz"} 1
kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 1
`
	const rest = `# TYPE process_start_time_seconds gauge
process_start_time_seconds 0
`
	if diff := cmp.Diff(checks+rest, text(t, s)); diff != "" {
		t.Error(diff)
	}
	s.Reset()
	if diff := cmp.Diff(rest, text(t, s)); diff != "" {
		t.Error("after a reset:", diff)
	}
}
