// Package runtime acts on the sandboxes and containers of one pod: it composes what the
// container runtime is asked for, asks, and tells the user what became of it. The pod's
// worker is the only caller for that pod; calls for different pods may run at once.
package runtime
