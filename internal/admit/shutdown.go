package admit

import (
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Shutdown rejects all pods while the machine is shutting down.
func Shutdown(shuttingDown func() bool) Check {
	return func(*v1.Pod, []*v1.Pod) *pod.Rejection {
		if shuttingDown() {
			return pod.Reject("NodeShutdown", "Pod was rejected as the node is shutting down.")
		}
		return nil
	}
}
