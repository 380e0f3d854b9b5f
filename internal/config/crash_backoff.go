package config

import "time"

// CrashBackoff returns the initial and the maximum delay of the back-off of crashing containers. A
// maximum in the configuration overrides that of the feature gates.
func (c *Config) CrashBackoff() (initial, maximum time.Duration) {
	initial, maximum = 10*time.Second, 5*time.Minute
	if c.Features.ReduceDefaultCrashLoopBackOffDecay {
		initial, maximum = time.Second, time.Minute
	}
	if set := c.Kubelet.CrashLoopBackOff.MaxContainerRestartPeriod; set != nil {
		maximum = set.Duration
	}
	return min(initial, maximum), maximum
}
