package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// stopPod stops the containers of a pod that terminates, and then its sandboxes. It records an
// event if any of them failed to stop.
func (r *Runtime) stopPod(ctx context.Context, p *v1.Pod, what Targets, how StopOptions) error {
	err := r.stopInOrder(ctx, p, what.Containers, how)
	if err != nil {
		err = fmt.Errorf("stop containers: %w", err)
	} else if failed := r.endSandboxes(ctx, p, what.Sandboxes); failed != nil {
		err = fmt.Errorf("stop sandboxes: %w", &killError{action: "KillPodSandbox", target: string(p.UID), err: failed})
	}
	// A stop is canceled to be repeated with a shorter grace period.
	if err != nil && ctx.Err() == nil {
		r.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedKillPod", "error killing pod: %s", killText(err))
	}
	return err
}

// endSandboxes stops the sandboxes of a pod that terminates.
func (r *Runtime) endSandboxes(ctx context.Context, p *v1.Pod, sandboxes []pod.Sandbox) error {
	step := why.Step{Kind: why.StopSandbox}
	r.deps.Why.Begin(p.UID, step, r.deps.Clock.Now())
	err := r.stopSandboxes(ctx, sandboxes)
	r.deps.Why.End(p.UID, step, err, r.deps.Clock.Now(), time.Time{})
	return err
}

// killError is a failure to stop a container, or the sandboxes, of a pod that terminates.
type killError struct {
	action string // as the reference kubelet names it in events
	target string
	err    error
}

func (e *killError) Error() string { return e.err.Error() }
func (e *killError) Unwrap() error { return e.err }

// text is the failure as the reference kubelet shows it.
func (e *killError) text() string {
	return fmt.Sprintf("failed to %q for %q with %sError: %q", e.action, e.target, e.action, cri.Text(e.err))
}

// killText is the text of all failures in err.
func killText(err error) string {
	texts := killTexts(err)
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func killTexts(err error) []string {
	switch e := err.(type) {
	case *killError:
		return []string{e.text()}
	case interface{ Unwrap() []error }:
		var texts []string
		for _, one := range e.Unwrap() {
			for _, text := range killTexts(one) {
				if !slices.Contains(texts, text) {
					texts = append(texts, text)
				}
			}
		}
		return texts
	case interface{ Unwrap() error }:
		return killTexts(e.Unwrap())
	}
	return nil
}
