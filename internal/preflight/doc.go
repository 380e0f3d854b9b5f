// Package preflight finds what would keep the kubelet from starting. The kubelet runs its checks first at
// every start, and `swiftlet check` runs the same ones.
package preflight
