package probe

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/backoff"
	"swiftlet/internal/pod"
)

// kind is which question a probe asks.
type kind int

const (
	startup kind = iota
	liveness
	readiness
)

func (k kind) String() string { return [...]string{"Startup", "Liveness", "Readiness"}[k] }

// specs are the probes that a container's spec asks for.
func specs(c *v1.Container) map[kind]*v1.Probe {
	return map[kind]*v1.Probe{startup: c.StartupProbe, liveness: c.LivenessProbe, readiness: c.ReadinessProbe}
}

// state is one probe of one container instance.
type state struct {
	key
	target Target
	result pod.Result
	// last is the latest answer and run how often in a row it was given.
	last pod.Result
	run  int32

	earliest time.Time // when its initial delay is over
	began    time.Time // when it was first due, if the container had just started then
	early    int       // askings so far that came before its regular turn
	at       time.Time // when it is due
	index    int       // in the heap; -1 while it is being asked
}

// due makes the first asking due now, or when the initial delay is over.
func (s *state) due(now time.Time) {
	if s.at = s.earliest; s.at.Before(now) {
		s.at = now
	}
	s.began = s.at
}

// spread makes the first run due at a part of the period from now, or when the initial
// delay is over. The container is not starting, so no quick runs follow.
func (s *state) spread(now time.Time, part float64) {
	s.at = now.Add(time.Duration(part * float64(period(s.target.Probe))))
	if s.at.Before(s.earliest) {
		s.at = s.earliest
	}
}

// initial is what holds before the first answer: alive until shown otherwise, not ready
// until shown so, unless the API server already shows this very instance as ready.
func initial(k kind, t Target, shown *v1.PodStatus) pod.Result {
	was := shownAs(t, shown)
	switch {
	case k == liveness:
		return pod.Passed
	case k == readiness && was != nil && was.Ready, k == startup && was != nil && was.Started != nil && *was.Started:
		return pod.Passed
	case k == readiness:
		return pod.Failed
	}
	return pod.Unsure
}

// shownAs finds the status shown of this very instance.
func shownAs(t Target, shown *v1.PodStatus) *v1.ContainerStatus {
	if shown == nil {
		return nil
	}
	for _, list := range [][]v1.ContainerStatus{shown.ContainerStatuses, shown.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == t.Container.Name && strings.HasSuffix(list[i].ContainerID, "://"+t.ContainerID) {
				return &list[i]
			}
		}
	}
	return nil
}

// take counts an answer. The result changes once an answer was given often enough in a
// row; an asking that failed itself counts for nothing, nor does a failure out of turn.
func (s *state) take(a Answer, outOfTurn bool) {
	if a.Result == pod.Unsure || (outOfTurn && a.Result == pod.Failed) {
		return
	}
	if a.Result != s.last {
		s.last, s.run = a.Result, 0
	}
	s.run++
	needed := s.target.Probe.SuccessThreshold
	if a.Result == pod.Failed {
		needed = s.target.Probe.FailureThreshold
	}
	if s.run >= max(needed, 1) {
		s.result = a.Result
	}
}

// final reports whether the probe need not be asked again for this instance: it has
// started, or it is going to be killed.
func (s *state) final() bool {
	switch s.kind {
	case startup:
		return s.result != pod.Unsure
	case liveness:
		return s.result == pod.Failed
	}
	return false
}

// A container is asked in quick succession until it answers for the first time: most are
// ready soon after they start, and should not wait for a whole period to be believed.
// Commands cost more than connections, so they are run less often.
const (
	earlyConnect = 25 * time.Millisecond
	earlyCommand = 250 * time.Millisecond
)

// outOfTurn reports whether an asking at now is one of those: if it fails, that counts for
// nothing and is not told. A startup probe's first asking is a regular one, because its
// failures are what a container is killed for.
func (s *state) outOfTurn(now time.Time) bool {
	return s.hurries(now) && (s.kind == readiness || s.early > 0)
}

// hurries reports whether the container may still be starting: no run has succeeded yet and
// the first period is not over. Later successes count towards successThreshold, so they are
// a period apart.
func (s *state) hurries(now time.Time) bool {
	return s.kind != liveness && s.result != pod.Passed && s.last != pod.Passed &&
		now.Before(s.began.Add(period(s.target.Probe)))
}

// next is when the probe is due after a run that began at ran and ended at now. Runs stay
// whole periods apart, however late one was, so that probes which were late together do not
// stay together. Turns that passed before the run began are skipped; one that passed while
// it was under way is due at once.
func (s *state) next(ran, now time.Time) time.Time {
	if !s.hurries(now) {
		each := period(s.target.Probe)
		return s.at.Add(max(0, ran.Sub(s.at)).Truncate(each) + each)
	}
	step := earlyConnect
	if s.target.Probe.Exec != nil {
		step = earlyCommand
	}
	each := period(s.target.Probe)
	s.early++
	soon, regular := now.Add(backoff.Backoff{First: step, Longest: each}.After(s.early)), s.began.Add(each)
	if soon.Before(regular) {
		return soon
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
