// Package node registers this machine as a Node with the API server, keeps the Node's status
// and conditions up to date, and renews its lease. It computes capacity and allocatable for
// the other packages.
//
// An ordered list of steps (fill.go) computes the status, one part of v1.NodeStatus each.
// Node sends it only when it differs from what the API server has, or when a report is due.
package node
