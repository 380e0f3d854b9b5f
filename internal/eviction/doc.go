// Package eviction protects the node when it runs short of memory, disk space, inodes or
// process IDs. When a signal falls below its threshold, the Evictor first removes dead
// containers and unused images, then evicts the pod that ranks first.
//
// Pure functions make the decisions: thresholds and the current levels give an evaluation
// (evaluate.go), pods and their usage give an order (rank.go). One loop runs them (run.go).
// It runs when the kernel reports that memory is low, and no later than the fastest pod
// could have used up what was left at the previous check. Slow work (removing images,
// measuring disks, waiting for a pod to terminate) runs in the background (background.go),
// so that the loop keeps watching memory.
package eviction
