// Package plan decides what to do next for a pod: from its spec and its observed state it computes
// the actions that reconcile the two. It does no I/O, has no state and does not use the clock, so
// every decision can be tested as a case.
package plan
