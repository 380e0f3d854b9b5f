// Package uml runs a program on a virtual machine: Debian's user-mode Linux, a kernel that runs as a
// process. It has cgroup v2, which the host may lack, and tests may exhaust its memory and disks.
//
// The machine sees the host's files. It may write anywhere, but only to its memory: changes are lost
// when it stops. It has one CPU, optionally a network and systemd, and boots in a few seconds. The
// command cmd/uml is for `go test -exec`.
//
// QEMU is no better here. /dev/kvm of a host may be PVM (module kvm_pvm), which only runs kernels
// that are built as its guests: Debian's hang as soon as the BIOS has loaded them. Without KVM
// (-accel tcg) Debian's kernel boots systemd in 18 s, with all capabilities and, unlike user-mode
// Linux, cpusets. Programs start in half the time of user-mode Linux (25 ms instead of 60) but
// compute at a thirtieth of the host's speed, where user-mode Linux has the host's.
package uml
