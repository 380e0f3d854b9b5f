// Package uml runs a program on a virtual machine: Debian's user-mode Linux, a kernel that runs as a
// process. It has cgroup v2, which the host may lack, and tests may exhaust its memory and disks.
//
// The machine sees the host's files. It may write anywhere, but only to its memory: changes are lost
// when it stops. It has one CPU, optionally a network and systemd, and boots in a few seconds. The
// command cmd/uml is for `go test -exec`.
package uml
