// Package bench measures bare CRI calls, the reference kubelet and Swiftlet side by side: one run, one
// machine, one API server, one containerd release. Each subject has a node of its own in a bed. Every
// round runs every experiment on every subject, in an order that changes with the round, so that a
// slow minute of the machine does not fall on one subject.
//
// Times are taken on the monotonic clock of this process. It sees pods through one watch per node.
package bench
