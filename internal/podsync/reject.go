package podsync

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume"
)

// attachLimitReason is the reason that schedulers and users know.
const attachLimitReason = "VolumeAttachmentLimitExceeded"

// reject sends away a pod that was let in where err says that it can never run here; nil
// for all that may pass.
func (s *Steps) reject(p *v1.Pod, err error) *pod.Failure {
	var full *volume.AttachLimitError
	var rejection *pod.Rejection
	// Devices are allocated as a late part of admission. Volumes are attached after it.
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
