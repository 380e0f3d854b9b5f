package agent

import (
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/notify"
)

// hub passes notifications from parts to others that are built after them. All subscriptions
// are made while the agent is built, before any part runs.
type hub struct {
	// syncPod: the pod has to be synced. syncPods: all pods have to be synced.
	syncPod  notify.Topic[types.UID]
	syncPods notify.Topic[struct{}]
	// podRemoved: the pod was removed from the node.
	podRemoved notify.Topic[types.UID]
	// nodeStatus: the Node's status may be out of date.
	nodeStatus notify.Topic[struct{}]
	// apiServerBack: the API server is reachable again.
	apiServerBack notify.Topic[struct{}]
	// driverRegistered: a CSI driver, by name, was registered.
	driverRegistered notify.Topic[string]
	// volumesReported: the API server has a different list of volumes in use.
	volumesReported notify.Topic[struct{}]
}

func (h *hub) reportNode() { h.nodeStatus.Publish(struct{}{}) }

// apiServerReturned retries at once what failed while the API server was unreachable. Without
// it the parts would retry after a back-off of up to ten seconds.
func (b *base) apiServerReturned() {
	b.log.Info("API server is reachable again, retrying failed operations")
	go b.hub.apiServerBack.Publish(struct{}{})
}
