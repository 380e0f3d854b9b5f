package numa

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Hint is a set of NUMA nodes that can satisfy a request for a resource.
type Hint struct {
	// Nodes are the NUMA nodes; none means no preference.
	Nodes Nodes
	// Preferred: fewer nodes could not satisfy the request, even if all of the machine were
	// free.
	Preferred bool
}

// Hints are the hints for each resource by name. A nil list means no preference, an empty one
// that the request cannot be satisfied.
type Hints map[string][]Hint

// Provider allocates resources of NUMA nodes. Its methods are never called concurrently.
//
// A container keeps an earlier allocation, also one restored after a restart: its only hint is
// that allocation's nodes, and Allocate changes nothing.
type Provider interface {
	// Hints returns the hints for a container's requests.
	Hints(p *v1.Pod, c *v1.Container) Hints
	// PodHints returns the hints for the requests of all the pod's containers.
	PodHints(p *v1.Pod) Hints
	// Allocate allocates the container's requests, from the hint's nodes as far as possible, and
	// persists the allocation before it returns. The pod's status shows a *pod.Rejection as it
	// is, any other error as unexpected.
	Allocate(ctx context.Context, p *v1.Pod, c *v1.Container, where Hint) error
	// Release releases the pod's resources, if any.
	Release(types.UID)
}

// PodProvider can allocate pod-level resources, which the pod's containers share or divide.
type PodProvider interface {
	Provider
	// AllocatePod allocates the pod-level requests.
	AllocatePod(ctx context.Context, p *v1.Pod, where Hint) error
}
