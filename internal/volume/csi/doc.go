// Package csi mounts volumes with CSI drivers, which register their sockets with the kubelet.
//
// Directories, volume data and messages are those of the reference kubelet, so that either can take
// over volumes that the other has mounted.
package csi
