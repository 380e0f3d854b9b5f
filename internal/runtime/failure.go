package runtime

import (
	"context"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	crierrors "k8s.io/cri-api/pkg/errors"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Reasons of waiting containers in the pod's status.
const (
	ReasonContainerConfig = "CreateContainerConfigError"
	ReasonCreateContainer = "CreateContainerError"
	ReasonRunContainer    = "RunContainerError"
	ReasonPostStartHook   = "PostStartHookError"
	ReasonCreateSandbox   = "CreatePodSandboxError"
)

// Error is a failure that is shown in the pod's status and events.
type Error struct {
	Reason  string
	Message string // for the user; Err may contain more than users may see
	Err     error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// classOfReason is the class of a failure whose cause has none.
var classOfReason = map[string]why.Class{
	ReasonContainerConfig: why.ConfigInvalid, ReasonCreateContainer: why.CreateFailed, ReasonRunContainer: why.StartFailed,
	ReasonPostStartHook: why.HookFailed, ReasonCreateSandbox: why.SandboxFailed,
}

// Why returns the class of the failure: that of its cause, if it has one.
func (e *Error) Why() (why.Class, string) {
	if class, object := why.Of(e.Err); class != why.Unclassified {
		return class, object
	}
	return classOfReason[e.Reason], ""
}

// Waiting returns the state of the container that failed, for its status.
func (e *Error) Waiting() pod.Waiting { return pod.Waiting{Reason: e.Reason, Message: e.Message} }

// ImageMountFailed reports whether CreateContainer failed because the container runtime could
// not mount an image volume.
func ImageMountFailed(err error) bool {
	known := (*Error)(nil)
	return errors.As(err, &known) && strings.HasPrefix(known.Message, crierrors.ErrImageVolumeMountFailed.Error())
}

// shownError has a message for the user and wraps the cause.
type shownError struct {
	message string
	err     error
}

func (e *shownError) Error() string { return e.message }
func (e *shownError) Unwrap() error { return e.err }

// failed returns err as an *Error; one that is an *Error already stays as it is.
func failed(reason string, err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	return &Error{Reason: reason, Message: cri.Description(err), Err: err}
}

// containerFailed records an event that a container cannot be created or started, and returns
// the error as an *Error. It records none for a call that was canceled because the pod
// terminates.
func (r *Runtime) containerFailed(ctx context.Context, p *v1.Pod, container, id, reason string, err error) error {
	err = failed(reason, err)
	if ctx.Err() == nil {
		var known *Error
		errors.As(err, &known)
		r.containerEvent(p, container, id, v1.EventTypeWarning, "Failed", "Error: "+known.Message)
	}
	return err
}

// containerEvent records an event about one container. It replaces the id by the name, so that
// repetitions of a failure are aggregated into one event.
func (r *Runtime) containerEvent(p *v1.Pod, container, id, kind, reason, message string) {
	if id != "" {
		message = strings.ReplaceAll(message, id, container)
	}
	r.deps.Events.Eventf(pod.EventRef(p, container), kind, reason, "%s", message)
}
