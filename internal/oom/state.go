package oom

import (
	"errors"

	"swiftlet/internal/checkpoint"
)

// stateFile is in the agent's folder.
const stateFile = "swiftlet_oom_state"

// state is how far the kernel's log has been told of.
type state struct {
	// BootID names the start of the machine that the log began with.
	BootID   string `json:"bootID"`
	Sequence uint64 `json:"sequence"`
}

// told reports whether an agent has told of this record before.
func (s state) told(boot string, r record) bool { return s.BootID == boot && r.sequence <= s.Sequence }

func loadState(path string) (s state, err error) {
	if err = checkpoint.Read(path, &s); errors.Is(err, checkpoint.ErrMissing) {
		err = nil
	}
	return s, err
}
