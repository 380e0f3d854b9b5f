package image

import (
	"time"

	"swiftlet/internal/pod"
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

// Waiting returns the container's waiting state.
func (e *Error) Waiting() pod.Waiting { return pod.Waiting{Reason: e.Reason, Message: e.Message} }
