package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// StartTime reports when this process started, which is when its counters did.
func StartTime() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "process_start_time_seconds",
		Help: "[ALPHA] Start time of the process since unix epoch in seconds.",
	}, func() float64 {
		self, err := procfs.Self()
		if err != nil {
			return 0
		}
		stat, err := self.Stat()
		if err != nil {
			return 0
		}
		began, err := stat.StartTime()
		if err != nil {
			return 0
		}
		return began
	})
}
