// Package plan decides what to do next for a pod: from its spec and what was observed of it
// to the actions that bring the two together. It does no I/O, keeps no state and never
// looks at the clock, so every decision can be tested as a case.
package plan
