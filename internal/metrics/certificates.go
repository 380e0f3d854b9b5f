package metrics

import (
	"crypto/tls"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"swiftlet/internal/meter"
)

// rotations are how long certificates live.
var rotations = []float64{60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000}

// ClientCertificate shows how long the certificate that the agent shows to the API server
// is still good for, and counts the renewals that failed. current is asked when somebody asks.
func (m *Metrics) ClientCertificate(current func() *tls.Certificate) (failed meter.Count) {
	m.lifetime(kubelet+"certificate_manager_client_ttl_seconds", "How long the agent's client certificate is still good for.", current)
	return m.counter(kubelet+"certificate_manager_client_expiration_renew_errors", "Renewals of the client certificate that failed.").Inc
}

// ServingCertificate does the same for the certificate of the node's API, and also takes
// how long the ones lived that were replaced.
func (m *Metrics) ServingCertificate(current func() *tls.Certificate) (renewed meter.Timing, failed meter.Count) {
	m.lifetime(kubelet+"certificate_manager_server_ttl_seconds", "How long the certificate of the node's API is still good for.", current)
	return seconds(m.histogram(kubelet+"certificate_manager_server_rotation_seconds", "How long certificates of the node's API lived before they were replaced.", rotations)),
		m.counter(kubelet+"server_expiration_renew_errors", "Renewals of the certificate of the node's API that failed.").Inc
}

// lifetime shows the whole seconds that a certificate is still good for; without one they
// are infinite.
func (m *Metrics) lifetime(name, help string, current func() *tls.Certificate) {
	registered(m, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		cert := current()
		if cert == nil || cert.Leaf == nil {
			return math.Inf(1)
		}
		return cert.Leaf.NotAfter.Sub(m.clock.Now()).Truncate(time.Second).Seconds()
	}))
}
