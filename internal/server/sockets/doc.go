// Package sockets answers programs on the node itself over gRPC on Unix sockets: which
// resources pods were given (PodResources), and what pods there are (Pods).
package sockets
