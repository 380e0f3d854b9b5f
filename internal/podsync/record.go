package podsync

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// track records that a step of the pod's worker begins.
func (s *Steps) track(w pod.Work, stage why.Stage) {
	s.deps.Why.Track(w.Pod, stage, w.Failure, s.deps.Clock.Now())
}

// record records that a step of the pod has ended.
func (s *Steps) record(p *v1.Pod, kind why.Kind, err error) {
	s.deps.Why.End(p.UID, why.Step{Kind: kind}, err, s.deps.Clock.Now(), time.Time{})
}

// timed records a step of the pod while f runs.
func (s *Steps) timed(p *v1.Pod, kind why.Kind, f func() error) error {
	s.deps.Why.Begin(p.UID, why.Step{Kind: kind}, s.deps.Clock.Now())
	err := f()
	s.record(p, kind, err)
	return err
}

// begins and ended record a step of a container. One that was canceled has not ended.
func (a *attempt) begins(step why.Step) { a.deps.Why.Begin(a.p.UID, step, a.deps.Clock.Now()) }

func (a *attempt) ended(step why.Step, err error) {
	a.deps.Why.End(a.p.UID, step, err, a.deps.Clock.Now(), time.Time{})
}

// delayed records when a container that failed to start is tried again.
func (a *attempt) delayed(container string, wait time.Duration) {
	next := a.deps.Clock.Now().Add(wait)
	for _, kind := range []why.Kind{why.Image, why.Create, why.Start, why.PostStart} {
		a.deps.Why.Delay(a.p.UID, why.Step{Kind: kind, Name: container}, next)
	}
}

// ensureImage pulls an image if necessary. A pull that the back-off delays is no attempt.
func (a *attempt) ensureImage(ctx context.Context, c *v1.Container, step why.Step) (image.Image, error) {
	a.deps.Why.Begin(a.p.UID, step, a.deps.Clock.Now())
	got, err := a.deps.Images.Ensure(ctx, a.p, c, a.prepared)
	now := a.deps.Clock.Now()
	var failed *image.Error
	switch {
	case err == nil:
		a.deps.Why.End(a.p.UID, step, nil, now, time.Time{})
		a.deps.Why.Bytes(a.p.UID, step, got.Size)
	case errors.As(err, &failed):
		next := time.Time{}
		if failed.RetryAfter > 0 {
			next = now.Add(failed.RetryAfter)
		}
		if failed.Reason == image.ReasonBackOff {
			a.deps.Why.Postpone(a.p.UID, step, next)
		} else {
			a.deps.Why.End(a.p.UID, step, err, now, next)
		}
	default:
		a.deps.Why.End(a.p.UID, step, err, now, time.Time{})
	}
	return got, err
}
