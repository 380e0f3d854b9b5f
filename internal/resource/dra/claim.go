package dra

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// key identifies a ResourceClaim.
type key struct{ namespace, name string }

// claim is a ResourceClaim that pods of this node use.
type claim struct {
	claimState
	// prepared is set after all drivers prepared the claim in this run of the agent.
	prepared bool
	// unpreparing is set from the first call to unprepare the claim.
	unpreparing bool
}

// claimRef is a pod's reference to a ResourceClaim.
type claimRef struct {
	name string // of the claim in the pod's spec, empty for its extended resources
	key  key
	// generated: the claim was generated from a template, for this pod or its PodGroup.
	generated bool
}

// claimRefs returns the claims of a pod.
func claimRefs(p *v1.Pod) ([]claimRef, error) {
	var all []claimRef
	for i := range p.Spec.ResourceClaims {
		c := &p.Spec.ResourceClaims[i]
		name, generated, err := resourceclaim.Name(p, c)
		if err != nil {
			return nil, err
		}
		if name != nil { // nil: the pod needs no claim
			all = append(all, claimRef{c.Name, key{p.Namespace, *name}, generated})
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		all = append(all, claimRef{"", key{p.Namespace, s.ResourceClaimName}, false})
	}
	return all, nil
}

// containerRequests returns the requests of each claim that a container uses; an empty request
// is the whole claim.
func containerRequests(p *v1.Pod, c *v1.Container) (map[key][]string, error) {
	all, err := claimRefs(p)
	if err != nil {
		return nil, err
	}
	requests := map[key][]string{}
	for _, ref := range all {
		for _, used := range c.Resources.Claims {
			if ref.name != "" && used.Name == ref.name {
				requests[ref.key] = append(requests[ref.key], used.Request)
			}
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		for _, r := range s.RequestMappings {
			if r.ContainerName == c.Name {
				k := key{p.Namespace, s.ResourceClaimName}
				requests[k] = append(requests[k], r.RequestName)
			}
		}
	}
	return requests, nil
}

// checkAccess returns an error if the pod may not use the claim. The error texts are the reference
// kubelet's.
func (m *Manager) checkAccess(p *v1.Pod, ref claimRef, c *resourceapi.ResourceClaim) error {
	if ref.generated {
		if err := resourceclaim.IsForPod(p, c, m.cfg.PodGroupClaims); err != nil {
			return err
		}
	}
	if !resourceclaim.IsReservedForPod(p, c, m.cfg.PodGroupClaims) {
		return fmt.Errorf("pod %s (%s) is not allowed to use ResourceClaim %s (%s)", p.Name, p.UID, c.Name, c.UID)
	}
	if c.Status.Allocation == nil {
		return fmt.Errorf("ResourceClaim %s: %w", c.Name, errors.New("not allocated"))
	}
	return nil
}

// newClaim returns a claim that is not prepared yet. It skips an operation of a driver if all of
// the driver's devices skip it.
func newClaim(c *resourceapi.ResourceClaim) *claim {
	created := &claim{claimState: claimState{
		ClaimUID: c.UID, ClaimName: c.Name, Namespace: c.Namespace,
		PodUIDs: sets.New[string](), DriverState: map[string]driverState{},
	}}
	needs := map[string]map[resourceapi.SkipNodeOperation]bool{}
	operations := []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationNodePrepareResources, resourceapi.SkipNodeOperationNodeUnprepareResources}
	for _, r := range c.Status.Allocation.Devices.Results {
		if needs[r.Driver] == nil {
			needs[r.Driver] = map[resourceapi.SkipNodeOperation]bool{}
		}
		for _, o := range operations {
			if !(driverState{SkipNodeOperations: r.SkipNodeOperations}).skips(o) {
				needs[r.Driver][o] = true
			}
		}
	}
	for name, needed := range needs {
		var s driverState
		if len(needed) == 0 {
			s.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
			created.DriverState[name] = s
			continue
		}
		for _, o := range operations {
			if !needed[o] {
				s.SkipNodeOperations = append(s.SkipNodeOperations, o)
			}
		}
		created.DriverState[name] = s
	}
	return created
}
