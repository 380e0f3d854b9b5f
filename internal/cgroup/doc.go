// Package cgroup keeps the part of the cgroup tree that bounds pods: one group for all of
// them (kubepods), one for each of the two lower QoS classes, one for each pod. Containers'
// own groups below a pod's belong to the runtime.
//
// It speaks cgroup v1 (also hybrid) and v2, as plain directories (driver "cgroupfs") or
// through systemd slices (driver "systemd").
package cgroup
