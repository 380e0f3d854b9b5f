// Package cgroup creates the cgroups of pods and sets their limits: one cgroup for all pods
// (kubepods), one for each of the QoS classes burstable and best effort, one for each pod. The
// runtime creates the cgroups of containers below a pod's.
//
// It supports cgroup v1 (also hybrid) and v2, with the drivers cgroupfs (plain directories) and
// systemd (slice units).
package cgroup
