// Package uml runs a program on a machine of its own: Debian's user-mode Linux, a kernel
// that runs as a process. It has what this machine's kernel may not show, above all
// cgroup v2 with nobody else in it, and may be starved, filled or brought down.
//
// The machine sees this one's files and may write anywhere, but what it writes is in its
// memory and goes with it. It has one CPU, a network only where it is given one, systemd as
// its first process if asked, and boots in a few seconds. The command cmd/uml is for
// `go test -exec`.
package uml
