package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Resizing counts the pods whose allocated resources are not in force yet.
func (p *Publisher) Resizing() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.pods {
		if slices.ContainsFunc(e.status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodResizeInProgress }) {
			n++
		}
	}
	return n
}
