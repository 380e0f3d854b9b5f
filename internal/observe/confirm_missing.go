package observe

import (
	"context"
	"fmt"
	"time"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// confirmMissing returns an error if the runtime still has a running container or a ready sandbox of the
// pod that it did not list: a container that counts as removed is started again, beside the one that runs.
// What has exited is not confirmed, so the agent's own removals cost no call, and neither is what was first
// observed after the listing began.
func (o *Observer) confirmMissing(ctx context.Context, l *podListing, began time.Time) error {
	sandboxes, containers := o.unlisted(l, began)
	for _, id := range sandboxes {
		if _, err := o.deps.Runtime.PodSandboxStatus(ctx, id, false); err == nil {
			return fmt.Errorf("list pod: runtime omits sandbox %s, which it still has", id)
		} else if !cri.IsNotFound(err) {
			return err
		}
	}
	for _, id := range containers {
		if _, err := o.deps.Runtime.ContainerStatus(ctx, id, false); err == nil {
			return fmt.Errorf("list pod: runtime omits container %s, which it still has", id)
		} else if !cri.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// unlisted returns the IDs of the ready sandboxes and running containers that were recorded before the listing
// began, and that it lacks.
func (o *Observer) unlisted(l *podListing, began time.Time) (sandboxes, containers []string) {
	listed := map[string]bool{}
	for _, s := range l.sandboxes {
		listed[s.Id] = true
	}
	for _, c := range l.containers {
		listed[c.Id] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.pods[l.ref.UID]
	if !ok {
		return nil, nil
	}
	for id, s := range r.sandboxes {
		if s.Ready && !listed[id] && s.firstSeen.Before(began) {
			sandboxes = append(sandboxes, id)
		}
	}
	for id, c := range r.containers {
		if c.State == pod.Running && !listed[id] && c.firstSeen.Before(began) {
			containers = append(containers, id)
		}
	}
	return sandboxes, containers
}
