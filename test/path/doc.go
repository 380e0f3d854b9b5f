// Package path tests the whole path of a pod: the agent's packages, connected as in internal/agent,
// with the fake runtime and a minimal fake API server. It runs on synctest's time, in which a call to
// the runtime takes a millisecond, so that tests of minutes are fast and deterministic.
//
// Most tests are scripts in testdata; script_test.go has their commands.
package path
