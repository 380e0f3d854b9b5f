package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/notify"
)

// hub passes notifications from parts to others that are built after them. Everything
// subscribes while the agent is built, before any part runs.
type hub struct {
	// syncPod: the pod's worker should sync it again. syncPods: so should all workers.
	syncPod  notify.Topic[types.UID]
	syncPods notify.Topic[struct{}]
	// podRemoved: nothing of the pod is left on the node.
	podRemoved notify.Topic[types.UID]
	// nodeStatus: the Node's status may be out of date.
	nodeStatus notify.Topic[struct{}]
	// apiServerBack: the API server answers after it could not be reached.
	apiServerBack notify.Topic[struct{}]
	// driverRegistered: a CSI driver, by name, can be called now.
	driverRegistered notify.Topic[string]
	// volumesReported: the API server has another list of volumes in use.
	volumesReported notify.Topic[struct{}]
}

func (h *hub) reportNode() { h.nodeStatus.Publish(struct{}{}) }

// newReturn adds what has everything retried at once that failed while the API server was
// unreachable, and returns what says that it is back. Each part would retry by itself, but
// after up to ten seconds.
func (b *base) newReturn() func() {
	back := notify.New()
	b.add("return of the API server", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-back:
			}
			b.log.Info("API server is reachable again, retrying what failed")
			b.hub.apiServerBack.Publish(struct{}{})
		}
	})
	return back.Notify
}
