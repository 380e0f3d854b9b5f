package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/resource/dra"
)

// draBuckets are the reference kubelet's buckets for operations of DRA drivers.
var draBuckets = prometheus.ExponentialBucketsRange(.1, 40, 15)

var claimsInUse = describe("dra_resource_claims_in_use", "Resource claims that pods use, by driver and in all.", "driver_name")

// Claims measures operations of DRA drivers.
func (m *Metrics) Claims() dra.Meters {
	operations := m.histograms("dra_operations_duration_seconds", "How long it took to prepare and to give up the claims of a pod.", draBuckets, "operation_name", "is_error")
	calls := m.histograms("dra_grpc_operations_duration_seconds", "How long calls of drivers took.", draBuckets, "driver_name", "method_name", "grpc_status_code")
	return dra.Meters{
		Operation: func(name string, took time.Duration, err error) {
			operations.WithLabelValues(name, strconv.FormatBool(err != nil)).Observe(took.Seconds())
		},
		Call: func(driver, method, code string, took time.Duration) {
			calls.WithLabelValues(driver, method, code).Observe(took.Seconds())
		},
	}
}
