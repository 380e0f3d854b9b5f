package metrics

import (
	"crypto/tls"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
)

// rotationBuckets are buckets of certificate lifetimes.
var rotationBuckets = []float64{60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000}

// ClientCertificate exposes the remaining lifetime of the kubelet's client certificate, which it
// reads from current on each scrape, and returns a counter of failed renewals.
func (m *Metrics) ClientCertificate(current func() *tls.Certificate) (failed meter.Count) {
	m.lifetime(kubelet+"certificate_manager_client_ttl_seconds", "How long the agent's client certificate is still good for.", current)
	return m.counter(kubelet+"certificate_manager_client_expiration_renew_errors", "Renewals of the client certificate that failed.").Inc
}

// ServingCertificate does the same for the serving certificate. renewed observes the lifetime of
// replaced certificates.
func (m *Metrics) ServingCertificate(current func() *tls.Certificate) (renewed meter.Timing, failed meter.Count) {
	m.lifetime(kubelet+"certificate_manager_server_ttl_seconds", "How long the certificate of the node's API is still good for.", current)
	return observeSeconds(m.histogram(kubelet+"certificate_manager_server_rotation_seconds", "How long certificates of the node's API lived before they were replaced.", rotationBuckets)),
		m.counter(kubelet+"server_expiration_renew_errors", "Renewals of the certificate of the node's API that failed.").Inc
}

// lifetime exposes the remaining lifetime of a certificate in whole seconds, or +Inf if there is
// none.
func (m *Metrics) lifetime(name, help string, current func() *tls.Certificate) {
	register(m, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		cert := current()
		if cert == nil || cert.Leaf == nil {
			return math.Inf(1)
		}
		return cert.Leaf.NotAfter.Sub(m.clock.Now()).Truncate(time.Second).Seconds()
	}))
}
