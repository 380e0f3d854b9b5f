// Package eviction keeps the node alive when pods take too much: it watches how much is
// left of memory, disks, inodes and process ids, and where that falls below a threshold it
// first removes what nobody uses, then ends the pod that is most to blame.
//
// What is decided is worked out by pure functions: Thresholds and the levels of the moment
// give a verdict (judge.go), pods and their usage give an order (rank.go). Around them
// stands one loop (run.go). It looks when the kernel says that memory runs short, and by
// itself no later than the fastest pod could have used up what was left at the last look.
// What takes long (removing images, measuring disks, waiting for a pod to end) is done beside
// the loop (aside.go), for memory must be seen to run short meanwhile.
package eviction
