// Package cpu is the CPU manager: it allocates CPUs to containers exclusively. The allocations
// are a value (State), and the static policy is pure functions of the machine's topology, that
// value and the pod (static_policy.go). CPUs holds the current state, and writes each change to
// the state file before it takes effect.
package cpu
