package podsync

import (
	"context"
	"errors"

	"swiftlet/internal/contain"
	"swiftlet/internal/image"
	"swiftlet/internal/plan"
	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
	"swiftlet/internal/why"
)

// podFailure is an error of the whole pod: none of its containers can start, and none of them is
// the cause.
type podFailure struct{ error }

func (e podFailure) Unwrap() error { return e.error }

// created is a container that is ready to start.
type created struct {
	id           string
	restartCount int
}

// startAll creates the containers in parallel and starts them in order. A container that fails
// does not delay the others; it is retried later. The goroutines that create containers must not
// use the pod's memory: only the loop that waits for them does.
func (a *attempt) startAll(ctx context.Context, starts []plan.Start) (failed map[string]bool, err error) {
	creating := make([]func() (created, error), len(starts))
	for i, s := range starts {
		creating[i] = inBackground(func() (created, error) { return a.create(ctx, s) })
	}
	failed = map[string]bool{}
	var whole podFailure
	for i, s := range starts {
		c, err := creating[i]()
		if err == nil {
			err = a.startOne(ctx, s, c)
		}
		a.measure(s, err)
		switch {
		case err == nil:
			delete(a.waitingReasons, s.Container.Name)
			a.startBackoff.succeeded(keyOf(s))
		case errors.As(err, new(*contain.Panic)):
			whole = podFailure{err}
		case errors.As(err, &whole): // all containers have this error
		default:
			failed[s.Container.Name] = true
			if ctx.Err() == nil {
				a.retryLater(s, err)
			}
		}
	}
	return failed, whole.error
}

// retryLater starts the back-off of a container that failed to start, and records the reason for
// its status.
func (a *attempt) retryLater(s plan.Start, err error) {
	wait := a.startBackoff.failed(keyOf(s), err, a.deps.Clock.Now())
	a.delayed(s.Container.Name, wait)
	a.deps.Log.Warn("start container failed", pod.RefOf(a.p).Attr(), "container", s.Container.Name, "err", err, "retry", wait)
	a.waitingReasons[s.Container.Name] = reasonOf(err)
}

// reasonOf returns the waiting reason for a container that failed to start.
func reasonOf(err error) pod.Waiting {
	var known interface{ Waiting() pod.Waiting }
	if errors.As(err, &known) {
		return known.Waiting()
	}
	return pod.Waiting{Reason: runtime.ReasonCreateContainer, Message: err.Error()}
}

// measure counts an attempt to start a container. An error of the whole pod is no attempt to start
// its containers.
func (a *attempt) measure(s plan.Start, err error) {
	if a.deps.Meters.Started == nil || errors.As(err, &podFailure{}) {
		return
	}
	failure := ""
	if err != nil {
		failure = reasonOf(err).Reason
	}
	a.deps.Meters.Started(s.Kind, failure)
}

// create creates one container. It pulls the image while the sandbox and the volumes are being
// prepared.
func (a *attempt) create(ctx context.Context, s plan.Start) (created, error) {
	if s.Adopt != "" {
		_, err := a.sandbox()
		return created{s.Adopt, s.RestartCount}, err
	}
	from, imageErr := a.ensureImage(ctx, s.Container, why.Step{Kind: why.Image, Name: s.Container.Name})
	box, err := a.sandbox()
	if err != nil {
		return created{}, podFailure{err}
	}
	mounted, err := a.volumes()
	if err != nil {
		return created{}, podFailure{err}
	}
	if imageErr != nil { // errors of sandbox and volumes come first
		return created{}, imageErr
	}
	images, err := a.imageVolumesOf(s.Container)
	if err != nil {
		return created{}, err
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return created{}, ctx.Err()
	}
	creation := why.Step{Kind: why.Create, Name: s.Container.Name}
	a.begins(creation)
	id, restartCount, err := a.createIn(ctx, s, box, from, mounted, images)
	a.ended(creation, err)
	return created{id, restartCount}, err
}

// createIn creates a container whose sandbox, image and volumes are ready.
func (a *attempt) createIn(ctx context.Context, s plan.Start, box sandbox, from image.Image, mounted map[string]volume.Mounted, images map[string]*runtime.VolumeImage) (id string, restartCount int, err error) {
	prepared, err := a.deps.Runtime.PrepareContainer(ctx, a.p, s.Container, func() (runtime.Input, error) {
		return a.input(ctx, s, box, from, mounted, images)
	})
	if err != nil {
		return "", 0, err
	}
	if ctx.Err() != nil {
		return "", 0, ctx.Err()
	}
	if _, err := a.checkpointed(); err != nil {
		return "", 0, podFailure{err}
	}
	if err := a.recordStart(ctx, a.p, s.Container); err != nil {
		return "", 0, podFailure{err}
	}
	id, err = a.deps.Runtime.CreateContainer(context.WithoutCancel(ctx), prepared)
	a.measureImageVolumes(len(images), err)
	return id, prepared.RestartCount, err
}

// startOne starts a created container and waits for its postStart hook.
func (a *attempt) startOne(ctx context.Context, s plan.Start, c created) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	box, err := a.sandbox()
	if err != nil {
		return podFailure{err}
	}
	return a.deps.Runtime.StartContainer(ctx, a.p, s.Container, c.id, c.restartCount, a.podIPs(box))
}

// podIPs returns the pod's IPs: those of the sandbox, or the host's.
func (a *attempt) podIPs(box sandbox) []string {
	if a.p.Spec.HostNetwork {
		return a.deps.Node.HostIPs()
	}
	return box.ips
}
