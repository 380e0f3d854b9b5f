package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Histogram buckets. They are the reference kubelet's, in seconds unless noted otherwise.
var (
	defaultBuckets = prometheus.DefBuckets
	// The reference kubelet relists more often, and its buckets end at ten seconds.
	relistIntervalBuckets      = append(slices.Clone(defaultBuckets), 30, 60, 90, 120)
	runtimeOperationBuckets    = prometheus.ExponentialBuckets(.005, 2.5, 14)
	podStartBuckets            = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	imagePullBuckets           = []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	statusWriteBuckets         = []float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60}
	volumeOperationBuckets     = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	reviewBuckets              = []float64{0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10}
	certificateLifetimeBuckets = []float64{0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000}
	resizeWaitBuckets          = []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}
	resizeBuckets              = []float64{10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000} // milliseconds
	containersPerPodBuckets    = prometheus.ExponentialBuckets(1, 2, 5)
)

// imageSizes maps upper bounds of image sizes to labels.
var imageSizes = []struct {
	upTo  uint64
	label string
}{
	{10 << 20, "0-10MB"},
	{100 << 20, "10MB-100MB"},
	{500 << 20, "100MB-500MB"},
	{1 << 30, "500MB-1GB"},
	{5 << 30, "1GB-5GB"},
	{10 << 30, "5GB-10GB"},
	{20 << 30, "10GB-20GB"},
	{30 << 30, "20GB-30GB"},
	{40 << 30, "30GB-40GB"},
	{60 << 30, "40GB-60GB"},
	{100 << 30, "60GB-100GB"},
}

func imageSizeLabel(bytes uint64) string {
	for _, s := range imageSizes {
		if bytes <= s.upTo {
			return s.label
		}
	}
	return "GT100GB"
}
