package numa

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Hint is one way to give a container an amount of a resource.
type Hint struct {
	// Nodes are where it would come from; none means that it does not matter where.
	Nodes Nodes
	// Preferred: the resource could not be had from fewer nodes, not even if all of the
	// machine were free.
	Preferred bool
}

// Hints are the ways to have each resource, by its name. A nil list means that it does not
// matter where the resource comes from, an empty one that it cannot be had at all.
type Hints map[string][]Hint

// Provider gives out resources that lie somewhere in the machine. Its methods are called
// for one pod after the other, never at the same time.
//
// A container that has already got what it asks for, from an earlier agent or an earlier
// call, keeps that: its only hint is where that lies, and Allocate changes nothing.
type Provider interface {
	// Hints says where the container could be given what it asks for.
	Hints(p *v1.Pod, c *v1.Container) Hints
	// PodHints says where the pod's containers could all be given what they ask for.
	PodHints(p *v1.Pod) Hints
	// Allocate gives the container what it asks for, from the hint's nodes as far as they
	// have it, and writes that down before it returns. An error that is a *pod.Rejection is
	// shown to the user as it is, any other as unexpected.
	Allocate(ctx context.Context, p *v1.Pod, c *v1.Container, where Hint) error
	// Release takes back all that the pod was given. A pod that has nothing is fine.
	Release(types.UID)
}

// PodProvider can give to a pod as a whole, for its containers to share or divide.
type PodProvider interface {
	Provider
	// AllocatePod gives the pod what its spec asks for as a whole.
	AllocatePod(ctx context.Context, p *v1.Pod, where Hint) error
}
