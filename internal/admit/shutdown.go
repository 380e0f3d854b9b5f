package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Shutdown rejects all pods once the machine is going down.
func Shutdown(under func() bool) Check {
	return func(*v1.Pod, []*v1.Pod) *pod.Rejection {
		if under() {
			return pod.Reject("NodeShutdown", "Pod was rejected as the node is shutting down.")
		}
		return nil
	}
}
