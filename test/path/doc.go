// Package path tests the path of a pod as a whole: the agent's own packages, wired as the
// agent wires them, over the fake runtime and a few lines that stand in for an API server.
// All of it runs on synctest's time, in which a call to the runtime takes a millisecond, so
// that a minute of a pod's life passes at once and nothing is ever waited for in vain.
//
// Most tests are the scripts in testdata; see script_test.go for what they can say.
package path
