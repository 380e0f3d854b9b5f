package volume

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// MountInBackground mounts the volumes of a running pod, which an earlier agent mounted, in the background. A volume
// that cannot be set up yet, such as because its driver is not registered, is retried until the pod is
// unmounted.
func (v *Volumes) MountInBackground(p *v1.Pod) {
	pv := v.podVolumesOf(p)
	_, names := v.splitMounted(pv, usedVolumes(p))
	for _, name := range names {
		state := v.stateOf(pv, name)
		v.mu.Lock()
		retrying := state.retrying
		state.retrying = true
		v.mu.Unlock()
		if !retrying {
			v.runAsync(func() { v.retryMount(pv.unmounting, pv, name, state) })
		}
	}
}

func (v *Volumes) retryMount(ctx context.Context, pv *podVolumes, name string, state *mountState) {
	defer func() {
		v.mu.Lock()
		state.retrying = false
		v.mu.Unlock()
		state.retryNow.Notify() // for a Mount that waits for its back-off
	}()
	for {
		_, err := v.trySetUp(ctx, pv, name, state)
		if err == nil || ctx.Err() != nil {
			return
		}
		v.recordFailure(pv, err)
		if !v.waitForRetry(ctx, pv, name, state, err) {
			return
		}
	}
}
