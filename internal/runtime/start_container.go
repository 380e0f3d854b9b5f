package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// StartContainer starts a created container and runs its postStart hook. It returns when the
// hook has ended. A container whose hook fails is stopped.
func (r *Runtime) StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error {
	// A start is not canceled when the pod starts to terminate: the worker has to know what was
	// started, to stop it. The call has a deadline of its own.
	step := why.Step{Kind: why.Start, Name: c.Name}
	r.deps.Why.Begin(p.UID, step, r.deps.Clock.Now())
	err := r.deps.CRI.StartContainer(context.WithoutCancel(ctx), id)
	if err != nil {
		err = r.containerFailed(ctx, p, c.Name, id, ReasonRunContainer, err)
	}
	r.deps.Why.End(p.UID, step, err, r.deps.Clock.Now(), time.Time{})
	if err != nil {
		return err
	}
	r.containerEvent(p, c.Name, id, v1.EventTypeNormal, "Started", "Container started")
	r.linkLog(pod.RefOf(p), c.Name, id, restartCount)
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	step.Kind = why.PostStart
	r.deps.Why.Begin(p.UID, step, r.deps.Clock.Now())
	err = r.runHook(ctx, hookCall{pod: p, container: c, id: id, podIPs: podIPs, hook: c.Lifecycle.PostStart})
	r.deps.Why.End(p.UID, step, why.Because(why.HookFailed, "", err), r.deps.Clock.Now(), time.Time{})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		// The pod terminates, and its termination knows the grace period. Or the kubelet stops,
		// which must not affect the container.
		return fmt.Errorf("run postStart hook: %w", ctx.Err())
	}
	r.deps.Log.Error("postStart hook failed", pod.RefOf(p).Attr(), "container", c.Name, "id", id, "err", err)
	// The hook's output is kept out of the event: it may contain secrets of the pod.
	r.containerEvent(p, c.Name, id, v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	stopped := pod.Container{ID: id, Name: c.Name, State: pod.Running}
	stop := r.stopContainer(ctx, p, &stopped, StopOptions{Message: "FailedPostStartHook", PodIPs: podIPs})
	return &Error{Reason: ReasonPostStartHook, Message: err.Error(), Err: errors.Join(err, stop)}
}

// linkLog makes the symlink by which log collectors find the log. A runtime that logs
// elsewhere has no file to link to. A failure does not affect the container.
func (r *Runtime) linkLog(ref pod.Ref, container, id string, restartCount int) {
	log := filepath.Join(r.podLogDir(ref), logPath(container, restartCount))
	if _, err := os.Stat(log); os.IsNotExist(err) {
		return
	}
	link := r.logLink(ref, container, id)
	err := os.Symlink(log, link)
	if os.IsNotExist(err) {
		if err = os.MkdirAll(r.cfg.ContainerLogsDir, 0o755); err == nil {
			err = os.Symlink(log, link)
		}
	}
	if err != nil && !os.IsExist(err) {
		r.deps.Log.Error("start container: cannot link log", "link", link, "log", log, "err", err)
	}
}
