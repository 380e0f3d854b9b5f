package dra

import (
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// key finds a claim as pods name it.
type key struct{ namespace, name string }

// claim is one that pods use here.
type claim struct {
	claimState
	// prepared: all drivers have answered this agent.
	prepared bool
	// leaving: drivers are asked to give it up.
	leaving bool
}

// use is one claim that a pod names.
type use struct {
	name string // of the claim in the pod's spec, empty for its extended resources
	key  key
	// own: it was made for this pod alone.
	own bool
}

// uses are the claims of a pod. Its errors are worded as the reference kubelet's.
func uses(p *v1.Pod) ([]use, error) {
	var all []use
	for _, c := range p.Spec.ResourceClaims {
		switch {
		case c.ResourceClaimName != nil:
			all = append(all, use{c.Name, key{p.Namespace, *c.ResourceClaimName}, false})
		case c.ResourceClaimTemplateName != nil:
			i := slices.IndexFunc(p.Status.ResourceClaimStatuses, func(s v1.PodResourceClaimStatus) bool { return s.Name == c.Name })
			if i < 0 {
				return nil, fmt.Errorf("pod %q: ResourceClaim not created yet", p.Namespace+"/"+p.Name)
			}
			if name := p.Status.ResourceClaimStatuses[i].ResourceClaimName; name != nil { // else none is needed
				all = append(all, use{c.Name, key{p.Namespace, *name}, true})
			}
		default:
			return nil, fmt.Errorf("pod %q, spec.resourceClaim %q: unsupported", p.Namespace+"/"+p.Name, c.Name)
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		all = append(all, use{"", key{p.Namespace, s.ResourceClaimName}, false})
	}
	return all, nil
}

// requests are what of each claim a container uses; an empty name is all of it.
func requests(p *v1.Pod, c *v1.Container) (map[key][]string, error) {
	all, err := uses(p)
	if err != nil {
		return nil, err
	}
	wanted := map[key][]string{}
	for _, u := range all {
		for _, named := range c.Resources.Claims {
			if u.name != "" && named.Name == u.name {
				wanted[u.key] = append(wanted[u.key], named.Request)
			}
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		for _, r := range s.RequestMappings {
			if r.ContainerName == c.Name {
				at := key{p.Namespace, s.ResourceClaimName}
				wanted[at] = append(wanted[at], r.RequestName)
			}
		}
	}
	return wanted, nil
}

// check says why the pod may not use the claim.
func check(p *v1.Pod, u use, c *resourceapi.ResourceClaim) error {
	if u.own && !metav1.IsControlledBy(c, p) {
		return fmt.Errorf("ResourceClaim %s/%s was not created for pod %s/%s (pod is not owner)", c.Namespace, c.Name, p.Namespace, p.Name)
	}
	reserved := slices.ContainsFunc(c.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool { return r.UID == p.UID })
	if !reserved {
		return fmt.Errorf("pod %s (%s) is not allowed to use ResourceClaim %s (%s)", p.Name, p.UID, c.Name, c.UID)
	}
	if c.Status.Allocation == nil {
		return fmt.Errorf("ResourceClaim %s: %w", c.Name, errors.New("not allocated"))
	}
	return nil
}

// newClaim is a claim of which nothing is prepared yet. A driver need not do what none of
// its devices needs.
func newClaim(c *resourceapi.ResourceClaim) *claim {
	made := &claim{claimState: claimState{
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
			made.DriverState[name] = s
			continue
		}
		for _, o := range operations {
			if !needed[o] {
				s.SkipNodeOperations = append(s.SkipNodeOperations, o)
			}
		}
		made.DriverState[name] = s
	}
	return made
}
