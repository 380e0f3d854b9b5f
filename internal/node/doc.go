// Package node stands for this machine towards the cluster: it registers the Node, keeps
// its status and conditions true, and renews its lease. It tells the rest of the agent
// what the machine has and what of it pods may use.
//
// Status is worked out by an ordered list of steps (fill.go), each a function from what
// is known to one part of v1.NodeStatus, and is sent only when it differs from what the
// API server has, or when a report is due.
package node
