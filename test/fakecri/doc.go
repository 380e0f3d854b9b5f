// Package fakecri is the repository's one fake container runtime: a gRPC server on a
// unix socket that serves CRI v1 from memory. Tests use it for what a real runtime does
// not do on demand: fail, hang, lose events, or answer in microseconds.
//
//	runtime := fakecri.Start(t)                  // stopped when the test ends
//	client, _ := cri.Dial(cri.Config{RuntimeEndpoint: runtime.Endpoint(), …})
//
// Behaviour is that of containerd where the agent can tell: an event carries the status
// of one sandbox and its containers, a removal's event carries no containers, events
// that nobody listens to are kept and delivered to the next subscriber.
//
// What a test may do to it:
//
//	runtime.Inject("StopContainer", fakecri.Fault{Err: …})   // or Delay, Hang; see Fault
//	runtime.Exit(containerID, 3)                             // a process ends
//	runtime.Events.Hold(), .Release(), .Drop(n), .Repeat()   // late, lost, doubled events
//	runtime.Events.Break()                                   // streams end
//	runtime.Stop(), runtime.Restart()                        // the runtime goes and returns, pods stay
//	runtime.Calls(), runtime.Count("ListContainers")         // what was asked
package fakecri
