// Package bed makes a cluster for tests out of the real things, on one machine: etcd, the
// API server, the controller manager and the scheduler as processes of the host, and nodes
// that each live in namespaces of their own with their own containerd and kubelet, ours or
// the reference. Nodes reach the API server over a bridge that belongs to the bed.
//
// Everything a bed starts dies with the process that started it, and Close leaves neither
// a process nor a mount, an interface, a cgroup or a file. It needs root.
package bed
