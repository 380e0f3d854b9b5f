package pod

import "k8s.io/apimachinery/pkg/runtime"

// Events records what users should see in the events of an object. client-go's recorders
// implement it.
type Events interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}
