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

// Release releases the claims of a pod that no longer runs, and calls drivers to unprepare those
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

// Retain releases the claims of pods that are not known: they were removed while no agent ran.
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
	var failed []error // an absent driver must not block others
	for uid := range unknown {
		failed = append(failed, m.Release(ctx, uid))
	}
	return errors.Join(failed...)
}

func (m *Manager) release(ctx context.Context, uid types.UID) error {
	drivers, unused, changed := m.removePod(uid)
	if !changed {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		if err := m.unprepareOn(ctx, name, drivers[name]); err != nil {
			return err
		}
	}
	m.mu.Lock()
	for _, k := range unused {
		delete(m.claims, k)
	}
	m.mu.Unlock()
	return m.save()
}

// removePod removes the pod from claims that other pods use too. It returns the claims that only
// this pod used, and by driver those to unprepare.
func (m *Manager) removePod(uid types.UID) (drivers map[string][]*drav1.Claim, unused []key, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, uid)
	drivers = map[string][]*drav1.Claim{}
	for k, c := range m.claims {
		if !c.PodUIDs.Has(string(uid)) {
			continue
		}
		changed = true
		if c.PodUIDs.Len() > 1 {
			c.PodUIDs.Delete(string(uid))
			continue
		}
		c.unpreparing = true
		unused = append(unused, k)
		for name, s := range c.DriverState {
			if !s.skips(resourceapi.SkipNodeOperationNodeUnprepareResources) {
				drivers[name] = append(drivers[name], c.message())
			}
		}
	}
	return drivers, unused, changed
}

func (m *Manager) unprepareOn(ctx context.Context, name string, claims []*drav1.Claim) error {
	d, err := m.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := d.client.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims})
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	for _, c := range claims {
		result, ok := response.GetClaims()[c.Uid]
		if !ok {
			return fmt.Errorf("NodeUnprepareResources skipped %d ResourceClaims", len(claims)-len(response.GetClaims()))
		}
		if result.GetError() != "" {
			return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", c.Name, result.GetError())
		}
	}
	return nil
}
