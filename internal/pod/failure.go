package pod

import v1 "k8s.io/api/core/v1"

// Failure makes a pod fail whatever the state of its containers: it was rejected or evicted, or its
// active deadline has passed.
type Failure struct {
	Reason  string
	Message string
	// Signal is the eviction signal, or the pod's own limit, for which it was evicted.
	Signal string
	// Condition, if set, is added to the pod's status, for example DisruptionTarget.
	Condition *v1.PodCondition
	// Evicted: the pod stays ready as long as its containers are, until their grace period ends.
	Evicted bool
	// Rejected: the node did not admit the pod, and no container ran. Its status has no container
	// statuses.
	Rejected bool
}

// Waiting is why a container waits: its image cannot be pulled, it crashes, or its configuration
// cannot be resolved.
type Waiting struct {
	Reason  string
	Message string
}

// ReasonWaitingForDevice is the reason of containers of a pod that waits for a device.
const ReasonWaitingForDevice = "WaitingForDevice"

// WaitError is the error of a pod that cannot start yet, and that is woken when it may be able to.
// Its containers have the reason in the pod's status.
type WaitError struct{ Waiting }

func (e *WaitError) Error() string { return e.Message }
