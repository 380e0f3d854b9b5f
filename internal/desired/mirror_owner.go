package desired

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// SyncWhenOwned returns a function that calls sync for each static pod once the Node is known: it
// owns their mirrors, which cannot be created before. nodeChanged yields when the Node may have
// become known.
func (m *Mirrors) SyncWhenOwned(pods *Pods, nodeChanged <-chan struct{}, sync func(types.UID)) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			if _, known := m.nodeUID(); known {
				break
			}
			select {
			case <-nodeChanged:
			case <-ctx.Done():
				return nil
			}
		}
		for _, p := range pods.List() {
			if pod.IsStatic(p) {
				sync(p.UID)
			}
		}
		return nil
	}
}
