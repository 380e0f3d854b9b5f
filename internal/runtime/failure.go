package runtime

import (
	"context"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	crierrors "k8s.io/cri-api/pkg/errors"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// Reasons a container waits, as pod status shows them.
const (
	ReasonContainerConfig = "CreateContainerConfigError"
	ReasonCreateContainer = "CreateContainerError"
	ReasonRunContainer    = "RunContainerError"
	ReasonPostStartHook   = "PostStartHookError"
	ReasonCreateSandbox   = "CreatePodSandboxError"
)

// Error is a failure that the pod's status and events name.
type Error struct {
	Reason  string
	Message string // for the user; Err may say more than they should read
	Err     error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Waiting is why the container waits, as its status shows it.
func (e *Error) Waiting() pod.Waiting { return pod.Waiting{Reason: e.Reason, Message: e.Message} }

// ImageMountFailed reports whether CreateContainer failed because the container runtime could
// not mount an image volume.
func ImageMountFailed(err error) bool {
	known := (*Error)(nil)
	return errors.As(err, &known) && strings.HasPrefix(known.Message, crierrors.ErrImageVolumeMountFailed.Error())
}

// shownError shows the user's message while keeping the chain that led to it.
type shownError struct {
	message string
	err     error
}

func (e *shownError) Error() string { return e.message }
func (e *shownError) Unwrap() error { return e.err }

// failed makes an Error of err, keeping one that it already is.
func failed(reason string, err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	return &Error{Reason: reason, Message: cri.Description(err), Err: err}
}

// containerFailed tells the user that a container cannot be created or started and
// returns the error to go on with. A call that was given up because the pod is to end is
// no news to them.
func (r *Runtime) containerFailed(ctx context.Context, p *v1.Pod, container, id, reason string, err error) error {
	err = failed(reason, err)
	if ctx.Err() == nil {
		var known *Error
		errors.As(err, &known)
		r.containerEvent(p, container, id, v1.EventTypeWarning, "Failed", "Error: "+known.Message)
	}
	return err
}

// containerEvent records an event about one container. Ids are replaced by the name, so
// that repetitions of one failure are counted as one event.
func (r *Runtime) containerEvent(p *v1.Pod, container, id, kind, reason, message string) {
	if id != "" {
		message = strings.ReplaceAll(message, id, container)
	}
	r.deps.Events.Eventf(pod.EventRef(p, container), kind, reason, "%s", message)
}
