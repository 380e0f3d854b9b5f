package source

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Runtime has the pods of the container runtime. Holds is valid once Synced is closed.
type Runtime interface {
	Synced() <-chan struct{}
	Holds(uid types.UID) bool
}

// adopter decides which static pods run already. A pod that has run under a UID keeps it as long as the
// agent runs, whether the runtime still has it or not.
type adopter struct {
	runtime Runtime // nil: none run
	adopted map[types.UID]bool
}

func newAdopter(r Runtime) *adopter { return &adopter{runtime: r, adopted: map[types.UID]bool{}} }

// wait returns when runs is valid, or the context's error.
func (a *adopter) wait(ctx context.Context) error {
	if a.runtime == nil {
		return nil
	}
	select {
	case <-a.runtime.Synced():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *adopter) runs(uid types.UID) bool {
	if !a.adopted[uid] && a.runtime != nil && a.runtime.Holds(uid) {
		a.adopted[uid] = true
	}
	return a.adopted[uid]
}
