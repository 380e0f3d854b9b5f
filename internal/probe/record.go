package probe

import (
	"errors"
	"time"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// kindsOfSteps are the steps of a pod's start that probes are.
var kindsOfSteps = map[kind]why.Kind{startup: why.Startup, liveness: why.Liveness, readiness: why.Readiness}

// record records a run that did not pass, and the first one that passes after it. The caller holds mu.
func (p *Prober) record(a probeRun, outcome Outcome) {
	s := a.state
	step := why.Step{Kind: kindsOfSteps[s.kind], Name: a.target.Container.Name}
	now := p.deps.Clock.Now()
	switch {
	case outcome.Result != pod.Passed:
		next := time.Time{}
		if s.index >= 0 {
			next = s.at
		}
		// The output is limited to what is kept before it is copied.
		err := why.Because(outcome.Class, "", errors.New(clip.Text(outcome.Output, clip.Event)))
		p.deps.Why.End(a.target.Pod.UID, step, err, now, next)
		s.recorded = true
	case s.recorded:
		p.deps.Why.Passed(a.target.Pod.UID, step, now)
		s.recorded = false
	}
}
