package image

import (
	"errors"
	"time"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

// Reasons of the waiting state of a container whose image is missing.
const (
	ReasonPull                = "ErrImagePull"
	ReasonBackOff             = "ImagePullBackOff"
	ReasonNeverPull           = "ErrImageNeverPull"
	ReasonInvalidName         = "InvalidImageName"
	ReasonInspect             = "ImageInspectError"
	ReasonRegistryUnavailable = "RegistryUnavailable"
	ReasonSignature           = "SignatureValidationFailed"
)

// Error is a failure to provide an image, with the reason and message for events and status.
type Error struct {
	Reason  string
	Message string
	// RetryAfter is the delay before the next attempt; zero means after the next change.
	RetryAfter time.Duration
	// Err is the cause, if any.
	Err error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Why returns the class of the failure: by its reason, or the runtime's code.
func (e *Error) Why() (why.Class, string) {
	switch e.Reason {
	case ReasonInvalidName:
		return why.ImageNameInvalid, ""
	case ReasonNeverPull:
		return why.ImageNotPresent, ""
	case ReasonRegistryUnavailable:
		return why.RegistryUnavailable, ""
	case ReasonSignature:
		return why.ImageSignature, ""
	case ReasonInspect:
		return why.Of(e.Err)
	}
	switch {
	case errors.As(e.Err, new(stalledError)):
		return why.ImagePullStalled, ""
	case errors.Is(e.Err, errPullQPS):
		return why.PullRateExceeded, ""
	case cri.IsNotFound(e.Err):
		return why.ImageNotFound, ""
	case cri.IsDenied(e.Err):
		return why.ImageUnauthorized, ""
	case cri.IsUnavailable(e.Err):
		return why.RegistryUnavailable, ""
	}
	return why.Of(e.Err)
}

// Waiting returns the container's waiting state.
func (e *Error) Waiting() pod.Waiting { return pod.Waiting{Reason: e.Reason, Message: e.Message} }
