// Package cpu gives containers CPUs that no other container runs on. Who has which is a
// value (State); what to give is decided by pure functions of the machine, that value and
// the pod (rules.go and after). CPUs holds the current value, writes it down before it is
// acted on, and answers for it.
package cpu
