package pod

import "fmt"

// Rejection is why a pod cannot run on this node. A nil *Rejection rejects nothing.
type Rejection struct {
	// Reason is one word, and Message a sentence, for the pod's status and an event.
	Reason, Message string
}

// Reject returns a Rejection with a formatted message.
func Reject(reason, format string, args ...any) *Rejection {
	return &Rejection{reason, fmt.Sprintf(format, args...)}
}

// RejectAllocation rejects a pod because of an error in the allocation of its resources.
func RejectAllocation(err error) *Rejection {
	return Reject("UnexpectedAdmissionError", "Allocate failed due to %v, which is unexpected", err)
}

func (r *Rejection) Error() string { return r.Message }

// Failure returns the failure of the rejected pod. rejected is Failure.Rejected.
func (r *Rejection) Failure(rejected bool) *Failure {
	return &Failure{Reason: r.Reason, Message: "Pod was rejected: " + r.Message, Rejected: rejected}
}
