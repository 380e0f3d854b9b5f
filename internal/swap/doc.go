// Package swap lists what would change on a node if this kubelet replaced the one that runs: settings, state
// files and pods. It only reads.
package swap
