// Package realcri runs the bundled containerd for tests of single packages. Each containerd has its
// own mount, network, pid, ipc and uts namespaces and a temporary directory. Its mounts, processes
// and sockets are not visible outside, and everything is removed with the test. Without root the
// test is skipped. For whole nodes see test/bed.
package realcri
