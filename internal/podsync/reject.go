package podsync

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume"
)

// attachLimitReason is the reason that schedulers and users know.
const attachLimitReason = "VolumeAttachmentLimitExceeded"

// refusal is an error that says that the pod can never run here.
type refusal interface {
	error
	// Refusal is how the user is told.
	Refusal() (reason, message string)
}

// reject sends away a pod that was let in where err says that it can never run here; nil
// for all that may pass.
func (s *Steps) reject(p *v1.Pod, err error) *pod.Failure {
	var reason, message string
	var full *volume.AttachLimitError
	var refused refusal
	// A refusal is a part of admission that had to wait. Volumes are attached after admission.
	rejected := false
	switch {
	case errors.As(err, &full):
		reason, message = attachLimitReason, full.Error()
	case errors.As(err, &refused):
		reason, message = refused.Refusal()
		observed := s.observed(p)
		rejected = len(observed.Live()) == 0
	default:
		return nil
	}
	if s.deps.Meters.Rejected != nil {
		s.deps.Meters.Rejected(p, reason)
	}
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, reason, "%s", message)
	return &pod.Failure{Reason: reason, Message: "Pod was rejected: " + message, Rejected: rejected}
}
