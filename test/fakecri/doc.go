// Package fakecri is the only fake container runtime of the repository: a gRPC server on a unix
// socket that serves CRI v1 from memory. Tests use it for what a real runtime does not do on
// demand: fail, hang, lose events, or respond in microseconds.
//
//	runtime := fakecri.Start(t)                  // stopped when the test ends
//	client, _ := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), …})
//
// It behaves like containerd as far as the agent can observe: an event has the status of one
// sandbox and its containers, the event of a removal has no containers, and events without a
// subscriber are kept for the next one.
//
// Tests control it with:
//
//	runtime.Inject("StopContainer", fakecri.Fault{Err: …})   // or Delay, Hang; see Fault
//	runtime.Exit(containerID, 3)                             // a process ends
//	runtime.Events.Hold(), .Release(), .Drop(n), .Repeat()   // late, lost, doubled events
//	runtime.Events.Break()                                   // streams end
//	runtime.Stop(), runtime.Restart()                        // the runtime restarts, containers keep running
//	runtime.Calls(), runtime.Count("ListContainers")         // requests so far
package fakecri
