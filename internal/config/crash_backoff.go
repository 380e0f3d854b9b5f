package config

import "time"

// CrashBackoff is the curve by which a crashing container is held back. A longest delay in
// the configuration goes before what the gates say.
func (c *Config) CrashBackoff() (first, longest time.Duration) {
	first, longest = 10*time.Second, 5*time.Minute
	if c.Features.ReduceDefaultCrashLoopBackOffDecay {
		first, longest = time.Second, time.Minute
	}
	if set := c.Kubelet.CrashLoopBackOff.MaxContainerRestartPeriod; set != nil {
		longest = set.Duration
	}
	return min(first, longest), longest
}
