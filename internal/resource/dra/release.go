package dra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
)

// Release gives up the pod's claims: the pod runs no more. Drivers are asked about those
// that no other pod uses. It may block, and may be called again until it succeeds.
func (m *Manager) Release(ctx context.Context, uid types.UID) error {
	began := m.deps.Clock.Now()
	err := m.release(ctx, uid)
	m.deps.Meters.Operation.Done("UnprepareResources", m.deps.Clock.Since(began), err)
	if err != nil {
		return fmt.Errorf("unprepare dynamic resources: %w", err)
	}
	return nil
}

// Retain gives up the claims of pods that are not known: they went while no agent ran.
func (m *Manager) Retain(ctx context.Context, known func(types.UID) bool) error {
	m.mu.Lock()
	unknown := map[types.UID]bool{}
	for _, c := range m.claims {
		for uid := range c.PodUIDs {
			if !known(types.UID(uid)) {
				unknown[types.UID(uid)] = true
			}
		}
	}
	m.mu.Unlock()
	var failed []error // a driver that is not there must not hold up others
	for uid := range unknown {
		failed = append(failed, m.Release(ctx, uid))
	}
	return errors.Join(failed...)
}

func (m *Manager) release(ctx context.Context, uid types.UID) error {
	drivers, last, changed := m.leave(uid)
	if !changed {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		if err := m.giveUp(ctx, name, drivers[name]); err != nil {
			return err
		}
	}
	m.mu.Lock()
	for _, at := range last {
		delete(m.claims, at)
	}
	m.mu.Unlock()
	return m.save()
}

// leave takes the pod off the claims that others use too. It returns those that it was the
// last to use, and what drivers have to do about them.
func (m *Manager) leave(uid types.UID) (drivers map[string][]*drav1.Claim, last []key, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, uid)
	drivers = map[string][]*drav1.Claim{}
	for at, c := range m.claims {
		if !c.PodUIDs.Has(string(uid)) {
			continue
		}
		changed = true
		if c.PodUIDs.Len() > 1 {
			c.PodUIDs.Delete(string(uid))
			continue
		}
		c.leaving = true
		last = append(last, at)
		for name, s := range c.DriverState {
			if !s.skips(resourceapi.SkipNodeOperationNodeUnprepareResources) {
				drivers[name] = append(drivers[name], c.asked())
			}
		}
	}
	return drivers, last, changed
}

func (m *Manager) giveUp(ctx context.Context, name string, claims []*drav1.Claim) error {
	d, err := m.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := d.client.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims})
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	for _, asked := range claims {
		told, ok := answer.GetClaims()[asked.Uid]
		if !ok {
			return fmt.Errorf("NodeUnprepareResources skipped %d ResourceClaims", len(claims)-len(answer.GetClaims()))
		}
		if told.GetError() != "" {
			return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", asked.Name, told.GetError())
		}
	}
	return nil
}
