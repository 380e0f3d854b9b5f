package pod

import v1 "k8s.io/api/core/v1"

// Failure is a verdict from outside the containers (admission, eviction, a deadline) that
// ends the pod whatever its containers say.
type Failure struct {
	Reason  string
	Message string
	// Condition, where set, is added to the pod's status (DisruptionTarget, for one).
	Condition *v1.PodCondition
	// Evicted: nothing is wrong with the pod itself. It stays ready for as long as its
	// containers are, which are given time to end.
	Evicted bool
	// Rejected: the node did not admit the pod, and nothing of it ran. Its status says nothing
	// about containers.
	Rejected bool
}

// Waiting says why a container is not running yet: an image that cannot be pulled, a
// crash loop, a configuration that cannot be resolved.
type Waiting struct {
	Reason  string
	Message string
}
