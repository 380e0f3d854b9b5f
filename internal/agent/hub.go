package agent

import (
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

// apiServerReturned has everything retried at once that failed while the API server was
// unreachable. Each part would retry by itself, but after up to ten seconds.
func (b *base) apiServerReturned() {
	b.log.Info("API server is reachable again, retrying what failed")
	go b.hub.apiServerBack.Publish(struct{}{})
}
