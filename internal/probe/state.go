package probe

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
)

// kind is the kind of a probe.
type kind int

const (
	startup kind = iota
	liveness
	readiness
)

func (k kind) String() string { return [...]string{"Startup", "Liveness", "Readiness"}[k] }

// probesOf returns the probes of a container's spec.
func probesOf(c *v1.Container) map[kind]*v1.Probe {
	return map[kind]*v1.Probe{startup: c.StartupProbe, liveness: c.LivenessProbe, readiness: c.ReadinessProbe}
}

// state is one probe of one container instance.
type state struct {
	key
	target Target
	result pod.Result
	// last is the last result, and streak how many times in a row it occurred.
	last   pod.Result
	streak int32

	earliest  time.Time // end of the initial delay
	began     time.Time // when the first run was due; zero if the container was not starting
	earlyRuns int       // number of runs before the regular ones
	recorded  bool      // Deps.Why may have a failure
	held      bool      // the first run waits for the published status
	at        time.Time // when it is due
	index     int       // in the heap; -1 during a run
}

// scheduleFirst makes the first run due now, or at the end of the initial delay.
func (s *state) scheduleFirst(now time.Time) {
	if s.at = s.earliest; s.at.Before(now) {
		s.at = now
	}
	s.began = s.at
}

// scheduleSpread makes the first run due after a fraction of the period, or at the end of the
// initial delay. The container is not starting, so no early runs follow.
func (s *state) scheduleSpread(now time.Time, fraction float64) {
	s.at = now.Add(time.Duration(fraction * float64(period(s.target.Probe))))
	if s.at.Before(s.earliest) {
		s.at = s.earliest
	}
}

// initialResult is the result before the first run: alive, and neither started nor ready.
func initialResult(k kind) pod.Result {
	return map[kind]pod.Result{startup: pod.ProbeUnknown, liveness: pod.Passed, readiness: pod.Failed}[k]
}

// update applies an outcome. The result changes after as many equal outcomes in a row as the
// threshold says. An error of the check does not count, nor does the failure of an early run.
func (s *state) update(a Outcome, early bool) {
	if a.Result == pod.ProbeUnknown || (early && a.Result == pod.Failed) {
		return
	}
	if a.Result != s.last {
		s.last, s.streak = a.Result, 0
	}
	s.streak++
	threshold := s.target.Probe.SuccessThreshold
	if a.Result == pod.Failed {
		threshold = s.target.Probe.FailureThreshold
	}
	if s.streak >= max(threshold, 1) {
		s.result = a.Result
	}
}

// final reports whether the probe need not run again for this instance: it has started, or it
// will be killed.
func (s *state) final() bool {
	switch s.kind {
	case startup:
		return s.result != pod.ProbeUnknown
	case liveness:
		return s.result == pod.Failed
	}
	return false
}

// First delay between the early runs, which precede the regular ones until the first success:
// most containers are ready soon after they start, and should not wait for a whole period.
// Commands cost more than connections, so they run less often.
const (
	earlyConnect = 25 * time.Millisecond
	earlyCommand = 250 * time.Millisecond
)

// early reports whether a run at now is an early one: its failure does not count, and causes no
// event. The first run of a startup probe is a regular one, because its failures kill the
// container.
func (s *state) early(now time.Time) bool {
	return s.mayBeStarting(now) && (s.kind == readiness || s.earlyRuns > 0)
}

// mayBeStarting reports whether the container may still be starting: no run has succeeded yet
// and the first period is not over. Later successes count towards successThreshold, so they are
// a period apart.
func (s *state) mayBeStarting(now time.Time) bool {
	return s.kind != liveness && s.result != pod.Passed && s.last != pod.Passed &&
		now.Before(s.began.Add(period(s.target.Probe)))
}

// next is when the probe is due after a run that began at ran and ended at now. Runs stay a
// multiple of the period apart, however late one was, so that probes which were late together
// do not stay together. Runs that were due before this one began are skipped; one that became
// due during it is due at once.
func (s *state) next(ran, now time.Time) time.Time {
	if !s.mayBeStarting(now) {
		each := period(s.target.Probe)
		return s.at.Add(max(0, ran.Sub(s.at)).Truncate(each) + each)
	}
	first := earlyConnect
	if s.target.Probe.Exec != nil {
		first = earlyCommand
	}
	each := period(s.target.Probe)
	s.earlyRuns++
	next, regular := now.Add(backoff.Backoff{First: first, Longest: each}.After(s.earlyRuns)), s.began.Add(each)
	if next.Before(regular) {
		return next
	}
	return regular
}

func period(p *v1.Probe) time.Duration {
	if p.PeriodSeconds <= 0 {
		return 10 * time.Second
	}
	return time.Duration(p.PeriodSeconds) * time.Second
}

func timeout(p *v1.Probe) time.Duration { return time.Duration(max(p.TimeoutSeconds, 1)) * time.Second }

// dueHeap orders probes by when they are due.
type dueHeap []*state

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	s := x.(*state)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *dueHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.index = -1
	return s
}
