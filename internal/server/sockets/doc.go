// Package sockets serves the gRPC APIs for programs on the node over Unix sockets: the resources
// allocated to pods (PodResources), and the pods of the node (Pods).
package sockets
