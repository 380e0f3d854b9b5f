package dra

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"swiftlet/internal/pod"
)

// Prepare has drivers prepare the pod's claims before anything of the pod starts. It may
// block, and is called by the pod's worker alone. The user is told of an error, which
// passes: the pod is tried again.
func (m *Manager) Prepare(ctx context.Context, p *v1.Pod, observed *pod.Observed) error {
	if len(p.Spec.ResourceClaims) == 0 && p.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	if m.ready(p, observed) {
		return nil
	}
	began := m.deps.Clock.Now()
	err := m.prepare(ctx, p)
	m.deps.Meters.Operation.Done("PrepareResources", m.deps.Clock.Since(began), err)
	m.mu.Lock()
	delete(m.waiting, p.UID)
	if err != nil {
		m.waiting[p.UID] = true
	}
	m.mu.Unlock()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("prepare dynamic resources: %w", err)
	m.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, "FailedPrepareDynamicResources", "Failed to prepare dynamic resources: %v", err)
	return err
}

// ready: nothing is left to prepare. What an earlier agent had prepared for a pod is good
// for as long as something of the pod runs.
func (m *Manager) ready(p *v1.Pod, observed *pod.Observed) bool {
	all, err := uses(p)
	if err != nil {
		return false
	}
	box := observed.Sandbox()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range all {
		c := m.claims[u.key]
		if c == nil || !c.PodUIDs.Has(string(p.UID)) || c.leaving || !c.prepared && (box == nil || !box.Ready) {
			return false
		}
	}
	return true
}

func (m *Manager) prepare(ctx context.Context, p *v1.Pod) error {
	all, err := uses(p)
	if err != nil {
		return err
	}
	// All is looked at before anything is noted: a pod that cannot be prepared can then go
	// without a driver that may never have been here.
	found := make([]*resourceapi.ResourceClaim, len(all))
	for i, u := range all {
		if found[i], err = m.look(ctx, p, u); err != nil {
			return err
		}
	}
	missing, err := m.note(p, found)
	if err != nil {
		return err
	}
	// Before a driver is asked: what it prepares must be known to whoever comes after us.
	if err := m.save(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if err := m.ask(ctx, name, missing[name]); err != nil {
			return err
		}
	}
	m.mu.Lock()
	for _, c := range found {
		m.claims[key{c.Namespace, c.Name}].prepared = true
	}
	m.mu.Unlock()
	return m.save()
}

// look reads the claim and makes sure that it can be prepared for the pod.
func (m *Manager) look(ctx context.Context, p *v1.Pod, u use) (*resourceapi.ResourceClaim, error) {
	if m.deps.API == nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: there is no API server", u.key.name)
	}
	c, err := m.deps.API.Claim(ctx, u.key.namespace, u.key.name)
	if err != nil {
		return nil, fmt.Errorf("fetch ResourceClaim %s: %w", u.key.name, err)
	}
	if err := check(p, u, c); err != nil {
		return nil, err
	}
	for name, s := range newClaim(c).DriverState {
		if len(s.SkipNodeOperations) > 0 && !m.cfg.OptionalOperations {
			return nil, fmt.Errorf("ResourceClaim %s: DRAOptionalNodeOperations feature gate is disabled on kubelet", c.Name)
		}
		if s.skips(resourceapi.SkipNodeOperationNodePrepareResources) {
			continue
		}
		if _, err := m.find(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// note has the pod among the users of its claims. It returns what drivers still have to do.
func (m *Manager) note(p *v1.Pod, found []*resourceapi.ResourceClaim) (map[string][]*drav1.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := map[string][]*drav1.Claim{}
	for _, f := range found {
		at := key{f.Namespace, f.Name}
		c := m.claims[at]
		switch {
		case c == nil:
			c = newClaim(f)
			m.claims[at] = c
		case c.ClaimUID != f.UID:
			return nil, fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", f.Name, c.ClaimUID)
		case c.leaving:
			return nil, fmt.Errorf("ResourceClaim %s is being unprepared", f.Name)
		}
		c.PodUIDs.Insert(string(p.UID))
		if c.prepared {
			continue
		}
		for name, s := range c.DriverState {
			if !s.skips(resourceapi.SkipNodeOperationNodePrepareResources) {
				missing[name] = append(missing[name], c.asked())
			}
		}
	}
	return missing, nil
}

func (c *claim) asked() *drav1.Claim {
	return &drav1.Claim{Namespace: c.Namespace, Uid: string(c.ClaimUID), Name: c.ClaimName}
}

// ask has one driver prepare claims, and notes the devices that it tells.
func (m *Manager) ask(ctx context.Context, name string, claims []*drav1.Claim) error {
	d, err := m.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := d.client.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
	if err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	for _, asked := range claims {
		told, ok := answer.GetClaims()[asked.Uid]
		if !ok {
			return fmt.Errorf("NodePrepareResources skipped %s ResourceClaims", strconv.Itoa(len(claims)-len(answer.GetClaims())))
		}
		if told.GetError() != "" {
			return fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", asked.Name, told.GetError())
		}
		m.took(name, key{asked.Namespace, asked.Name}, told.GetDevices())
	}
	return nil
}

// took notes a driver's devices in place of those that it told before.
func (m *Manager) took(driver string, at key, told []*drav1.Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.claims[at]
	if c == nil {
		return
	}
	s := c.DriverState[driver]
	s.Devices = nil
	for _, d := range told {
		s.Devices = append(s.Devices, device{
			PoolName: d.GetPoolName(), DeviceName: d.GetDeviceName(), ShareID: (*types.UID)(d.ShareId),
			RequestNames: d.GetRequestNames(), CDIDeviceIDs: d.GetCdiDeviceIds(),
		})
	}
	c.DriverState[driver] = s
}
