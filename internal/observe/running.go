package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Running reports whether the container is running by its observed state.
func (o *Observer) Running(uid types.UID, container string) bool {
	observed, ok := o.Get(uid)
	return ok && slices.ContainsFunc(observed.Live(), func(c pod.Container) bool { return c.Name == container })
}

// Holds reports whether the runtime has a sandbox or container of the pod.
func (o *Observer) Holds(uid types.UID) bool {
	_, known := o.Get(uid)
	return known || o.Unread(uid)
}
