package pod

import v1 "k8s.io/api/core/v1"

// IsTerminal reports whether a pod in this phase has ended. It never leaves the phase.
func IsTerminal(phase v1.PodPhase) bool {
	return phase == v1.PodSucceeded || phase == v1.PodFailed
}

// Reasons for which a container waits while its pod starts.
const (
	ReasonCreating     = "ContainerCreating"
	ReasonInitializing = "PodInitializing"
)
