package podsync

import (
	"time"

	"swiftlet/internal/instant"
	"swiftlet/internal/pod"
)

// exitTime is when one instance of a container exited.
type exitTime struct {
	id string
	at time.Time
}

// exitedAt returns when the instance exited. The runtime's time is converted when the exit is first seen, so
// that a back-off does not change when the wall clock is set.
func (m *memory) exitedAt(container string, last *pod.Container, now time.Time) time.Time {
	if known := m.exits[container]; known.id == last.ID {
		return known.at
	}
	at := instant.Past(last.FinishedAt, now)
	m.exits[container] = exitTime{last.ID, at}
	return at
}
