package check

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// alerts are series with which an alert's expression is true after two hours, and those with which it is not.
var alerts = map[string]struct{ fires, silent string }{
	"PanicContained":     {`swiftlet_contained_panics_total{job="kubelet",instance="n",part="sync"} _x110 1x40`, `swiftlet_contained_panics_total{job="kubelet",instance="n",part="sync"} 1x150`},
	"RuntimeIsNotListed": {`kubelet_pleg_last_seen_seconds{job="kubelet",instance="n"} 0x150`, `kubelet_pleg_last_seen_seconds{job="kubelet",instance="n"} 0+60x150`},
	"EventStreamBreaks":  {`kubelet_evented_pleg_connection_error_count{job="kubelet",instance="n"} 0+1x150`, `kubelet_evented_pleg_connection_error_count{job="kubelet",instance="n"} 3x150`},
	"PodsAreEvicted":     {`kubelet_evictions{job="kubelet",instance="n",eviction_signal="memory.available"} _x110 1x40`, `kubelet_evictions{job="kubelet",instance="n",eviction_signal="memory.available"} 4x150`},
	"LivenessProbesFail": {
		`prober_probe_total{job="kubelet",instance="n",namespace="a",pod="p",container="c",probe_type="Liveness",result="failed"} 0+1x150`,
		`prober_probe_total{job="kubelet",instance="n",namespace="a",pod="p",container="c",probe_type="Readiness",result="failed"} 0+1x150`,
	},
	"ProbesHaveNoResult": {
		`prober_probe_total{job="kubelet",instance="n",probe_type="Liveness",result="unknown"} 0+2x150`,
		`prober_probe_total{job="kubelet",instance="n",probe_type="Liveness",result="successful"} 0+2x150`,
	},
	"PodsAreRejected": {`kubelet_admission_rejections_total{job="kubelet",instance="n",reason="Evicted"} _x110 1x40`, `kubelet_admission_rejections_total{job="kubelet",instance="n",reason="Evicted"} 1x150`},
	"KubeletIsDown":   {`up{job="kubelet",instance="n"} 0x150`, `up{job="kubelet",instance="n"} 1x150`},
	"EventsAreLate": {
		"kubelet_evented_pleg_connection_latency_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"5\"} 0x150\n  kubelet_evented_pleg_connection_latency_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+9x150",
		"kubelet_evented_pleg_connection_latency_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"0.005\"} 0+9x150\n  kubelet_evented_pleg_connection_latency_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+9x150",
	},
	"RelistIsSlow": {
		"kubelet_pleg_relist_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"10\"} 0x150\n  kubelet_pleg_relist_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+1x150",
		"kubelet_pleg_relist_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"0.1\"} 0+1x150\n  kubelet_pleg_relist_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+1x150",
	},
	"StatusWritesAreSlow": {
		"kubelet_pod_status_sync_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"60\"} 0x150\n  kubelet_pod_status_sync_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+1x150",
		"kubelet_pod_status_sync_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"0.05\"} 0+1x150\n  kubelet_pod_status_sync_duration_seconds_bucket{job=\"kubelet\",instance=\"n\",le=\"+Inf\"} 0+1x150",
	},
	"PodStartsAreSlow": {`instance_step:kubelet_pod_start_seconds:p99{instance="n",step="sandbox"} 11x150`, `instance_step:kubelet_pod_start_seconds:p99{instance="n",step="image"} 400x150`},
	"PodStartsFail": {
		"kubelet_started_pods_total{job=\"kubelet\",instance=\"n\"} 0+1x150\n  kubelet_started_pods_errors_total{job=\"kubelet\",instance=\"n\"} 0+1x150",
		"kubelet_started_pods_total{job=\"kubelet\",instance=\"n\"} 0+9x150\n  kubelet_started_pods_errors_total{job=\"kubelet\",instance=\"n\"} 0+1x150",
	},
	"ClientCertificateExpires": {`kubelet_certificate_manager_client_ttl_seconds{job="kubelet",instance="n"} 3600x150`, `kubelet_certificate_manager_client_ttl_seconds{job="kubelet",instance="n"} 864000x150`},
}

// TestAlerts evaluates every alert on series for which it must fire, and on others.
func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../rules.yaml", false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if errs != nil {
		t.Fatal(errs)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: time.Minute, Parser: promQL})
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			c, ok := alerts[r.Alert]
			if !ok {
				t.Errorf("%s has no case", r.Alert)
				continue
			}
			for want, series := range map[int]string{1: c.fires, 0: c.silent} {
				storage := promqltest.LoadedStorage(t, "load 1m\n  "+series)
				q, err := engine.NewInstantQuery(context.Background(), storage, nil, r.Expr, time.Unix(2*60*60, 0))
				if err != nil {
					t.Fatal(err)
				}
				result := q.Exec(t.Context())
				found, err := result.Vector()
				if err != nil || len(found) != want {
					t.Errorf("%s on %s: %v, %v", r.Alert, series, found, err)
				}
				q.Close()
				storage.Close()
			}
		}
	}
}
