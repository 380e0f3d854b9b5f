package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// MinGracePeriod is the shortest time between SIGTERM and SIGKILL, even if a preStop hook has used up
// the grace period.
const MinGracePeriod = 2 * time.Second

// maxSeconds is a hundred years. The API allows longer times, which time.Duration cannot hold: they would wrap
// around to short ones.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// Seconds converts a time of the API. A longer one is a hundred years.
func Seconds(n int64) time.Duration {
	return time.Duration(max(min(n, maxSeconds), -maxSeconds)) * time.Second
}

// GracePeriod returns the grace period of a pod in seconds: the override if there is one, else that of
// its deletion, else that of its spec. It is nil if none is set.
func GracePeriod(p *v1.Pod, override *int64) *int64 {
	switch {
	case override != nil:
		return override
	case p.DeletionGracePeriodSeconds != nil:
		return p.DeletionGracePeriodSeconds
	}
	return p.Spec.TerminationGracePeriodSeconds
}
