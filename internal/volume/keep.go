package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// Keep looks after the volumes of a pod that runs already: an earlier agent mounted them.
// It returns at once; what cannot be brought up to date yet, because its driver is not back
// either, is tried again for as long as the pod is here.
func (v *Volumes) Keep(p *v1.Pod) {
	pv := v.known(p)
	_, names := v.split(pv, wanted(p))
	for _, name := range names {
		state := v.stateOf(pv, name)
		v.mu.Lock()
		kept := state.kept
		state.kept = true
		v.mu.Unlock()
		if !kept {
			v.begin(func() { v.keep(pv.gone, pv, name, state) })
		}
	}
}

func (v *Volumes) keep(ctx context.Context, pv *podVolumes, name string, state *mountState) {
	defer func() {
		v.mu.Lock()
		state.kept = false
		v.mu.Unlock()
		state.hint.Notify() // a Mount that waits, too, need not wait for its own timer
	}()
	for {
		_, err := v.setUp(ctx, pv, name, state)
		if err == nil || ctx.Err() != nil {
			return
		}
		v.tellFailure(pv, err)
		if !v.waitForRetry(ctx, state, err) {
			return
		}
	}
}
