// Package bed creates a real cluster for tests on one machine. etcd, API server, controller
// manager and scheduler are processes of the host. Each node is a box: namespaces with their own
// containerd and kubelet, Swiftlet or the reference kubelet. Nodes reach the API server over a
// bridge of the bed.
//
// Everything that a bed starts dies with the process that started it. Close leaves no process,
// mount, interface, cgroup or file. A bed needs root.
package bed
