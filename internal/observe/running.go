package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Running reports whether the container was running when it was last observed.
func (o *Observer) Running(uid types.UID, container string) bool {
	observed, ok := o.Get(uid)
	return ok && slices.ContainsFunc(observed.Live(), func(c pod.Container) bool { return c.Name == container })
}

// Holds reports whether the runtime still has something of the pod.
func (o *Observer) Holds(uid types.UID) bool {
	_, known := o.Get(uid)
	return known || o.Unread(uid)
}
