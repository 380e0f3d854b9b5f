package podsync

import (
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// HandlerFinder returns a function that finds the runtime handler of a pod's RuntimeClass, and the
// features that the runtime supports for it. node returns the Node.
func HandlerFinder(class func(name string) (*nodev1.RuntimeClass, error), node func() *v1.Node) func(*v1.Pod) (runtime.Handler, error) {
	return func(p *v1.Pod) (runtime.Handler, error) {
		var h runtime.Handler
		if name := p.Spec.RuntimeClassName; name != nil && *name != "" {
			found, err := class(*name)
			if err != nil {
				return h, why.Because(why.RuntimeClassNotFound, *name, err)
			}
			h.Name = found.Handler
		}
		for _, supported := range node().Status.RuntimeHandlers {
			if supported.Name == h.Name && supported.Features != nil && supported.Features.RecursiveReadOnlyMounts != nil {
				h.RecursiveReadOnly = *supported.Features.RecursiveReadOnlyMounts
			}
		}
		return h, nil
	}
}
