// Package csi brings up volumes through CSI drivers: programs of storage vendors that
// register a socket with the node.
//
// Directories, notes on the disk and messages are the reference kubelet's, so that either can
// take over what the other has mounted.
package csi
