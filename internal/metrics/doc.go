// Package metrics exposes the kubelet's measurements to Prometheus under the reference kubelet's
// names. It implements the instruments of package meter that other packages measure with. State
// that can be read on a scrape is read then instead of being counted.
package metrics
