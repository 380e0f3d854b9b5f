// Package hollow runs agents with their production wiring on one machine, each as a node of its own. Only
// the container runtime, cgroups and mounts are simulated: test/fakecri serves CRI on a unix socket, with
// the delays of a real runtime, and test/fakekernel has the rest. The API server is a real one.
package hollow
