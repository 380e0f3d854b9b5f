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
	if !errors.As(err, &full) {
		return nil
	}
	if s.deps.Meters.Rejected != nil {
		s.deps.Meters.Rejected(p, attachLimitReason)
	}
	s.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, attachLimitReason, "%s", full.Error())
	return &pod.Failure{Reason: attachLimitReason, Message: "Pod was rejected: " + full.Error()}
}
