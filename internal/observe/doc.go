// Package observe is the PLEG: it keeps the observed state of every pod in the runtime, and
// reports which pods have changed.
//
// Observations come from three sources: the runtime's event stream, a full relist that corrects
// missed events, and Refresh, by which a pod's worker reads its pod after acting on it. They
// overlap and arrive out of order. Two properties of runtimes make merging safe: an ID is never
// reused, and a container only moves forward, from created to running to exited. So the state
// of an object never moves back, a removed object never returns, and an object that is missing
// in an event is read from the runtime, not dropped.
package observe
