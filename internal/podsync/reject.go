package podsync

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume"
)

// attachLimitReason is the reference kubelet's reason.
const attachLimitReason = "VolumeAttachmentLimitExceeded"

// reject returns the failure of an admitted pod where err means that it can never run here, and
// nil for errors that are retried.
func (s *Steps) reject(p *v1.Pod, err error) *pod.Failure {
	var full *volume.AttachLimitError
	var rejection *pod.Rejection
	// Allocating devices is the last part of admission. Volumes are attached after it.
	rejected := false
	switch {
	case errors.As(err, &full):
		rejection = pod.Reject(attachLimitReason, "%s", full.Error())
	case errors.As(err, &rejection):
		observed := s.observed(p)
		rejected = len(observed.Live()) == 0
	default:
		return nil
	}
	if s.deps.Meters.Rejected != nil {
		s.deps.Meters.Rejected(p, rejection.Reason)
	}
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, rejection.Reason, "%s", rejection.Message)
	return rejection.Failure(rejected)
}
