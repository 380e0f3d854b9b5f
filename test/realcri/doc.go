// Package realcri runs the bundled containerd for the tests of single packages, each in
// mount, network, pid, ipc and uts namespaces of its own, with its files in a temporary
// directory: nothing it mounts, starts or binds is seen outside, and everything ends with
// the test. It needs root, and skips the test without. For whole nodes see test/bed.
package realcri
