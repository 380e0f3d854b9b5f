package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Buckets are the reference kubelet's, in seconds where nothing else is said.
var (
	usual = prometheus.DefBuckets
	// Relists are rarer here than the reference's, whose buckets end at ten seconds.
	relistIntervals   = append(slices.Clone(usual), 30, 60, 90, 120)
	runtimeOperations = prometheus.ExponentialBuckets(.005, 2.5, 14)
	podStarts         = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	imagePulls        = []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	statusWrites      = []float64{0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60}
	volumeOperations  = []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	reviews           = []float64{0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10}
	lifetimes         = []float64{0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000}
	resizeWaits       = []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}
	resizes           = []float64{10, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000} // milliseconds
	containersPerPod  = prometheus.ExponentialBuckets(1, 2, 5)
)

// imageSizes are the upper bounds of the labels that sizes of images are shown by.
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

func imageSize(bytes uint64) string {
	for _, s := range imageSizes {
		if bytes <= s.upTo {
			return s.label
		}
	}
	return "GT100GB"
}
