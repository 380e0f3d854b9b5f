package image

import (
	"time"

	"swiftlet/internal/pod"
)

// Reasons for which a container waits for its image, as pod status shows them.
const (
	ReasonPull                = "ErrImagePull"
	ReasonBackOff             = "ImagePullBackOff"
	ReasonNeverPull           = "ErrImageNeverPull"
	ReasonInvalidName         = "InvalidImageName"
	ReasonInspect             = "ImageInspectError"
	ReasonRegistryUnavailable = "RegistryUnavailable"
	ReasonSignature           = "SignatureValidationFailed"
)

// Error is why an image is not there, in the words that the user sees.
type Error struct {
	Reason  string
	Message string
	// RetryAfter is when it makes sense to ask again; zero means when something changes.
	RetryAfter time.Duration
	// Err is the cause, where there is one beyond the message.
	Err error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Waiting is the state to show for the container.
func (e *Error) Waiting() pod.Waiting { return pod.Waiting{Reason: e.Reason, Message: e.Message} }
