package allocation

import (
	"log/slog"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// States are the resources that pods were allocated and those that they have, across restarts
// of the agent. They are where the reference kubelet keeps them.
type States struct {
	Allocated, Actuated *State
}

// OpenStates reads both from the agent's directory. It moves a corrupt file aside.
func OpenStates(rootDir string, log *slog.Logger) (s States, err error) {
	if s.Allocated, err = OpenOrRecover(filepath.Join(rootDir, Allocated), log); err != nil {
		return s, err
	}
	s.Actuated, err = OpenOrRecover(filepath.Join(rootDir, Actuated), log)
	return s, err
}

// Retain drops what is stored of pods that are not known.
func (s States) Retain(known func(types.UID) bool) {
	s.Allocated.Retain(known)
	s.Actuated.Retain(known)
}
