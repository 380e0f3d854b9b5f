package oom

import (
	"errors"

	"swiftlet/internal/checkpoint"
)

// stateFile is in the root directory.
const stateFile = "swiftlet_oom_state"

// state is the last record that was reported.
type state struct {
	// BootID identifies the boot that the sequence belongs to.
	BootID   string `json:"bootID"`
	Sequence uint64 `json:"sequence"`
}

// reported reports whether this or an earlier kubelet has reported the record.
func (s state) reported(boot string, r record) bool {
	return s.BootID == boot && r.sequence <= s.Sequence
}

func loadState(path string) (s state, err error) {
	if err = checkpoint.Read(path, &s); errors.Is(err, checkpoint.ErrMissing) {
		err = nil
	}
	return s, err
}
