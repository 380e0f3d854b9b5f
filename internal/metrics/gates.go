package metrics

import (
	"context"

	"k8s.io/component-base/metrics/prometheus/feature"
)

// FeatureGate exposes whether a feature gate is on. Its stage is ALPHA, BETA, DEPRECATED or GA.
func (m *Metrics) FeatureGate(name, stage string, on bool) {
	if stage == "GA" {
		stage = "" // as in all Kubernetes components
	}
	feature.RecordFeatureInfo(context.Background(), name, stage, on)
}
