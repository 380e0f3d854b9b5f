package pod

import v1 "k8s.io/api/core/v1"

// Failure makes a pod fail whatever the state of its containers: it was rejected or evicted, or its
// active deadline has passed.
type Failure struct {
	Reason  string
	Message string
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
