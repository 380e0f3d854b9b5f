// Package runtime acts on the sandboxes and containers of pods: it builds the CRI requests,
// sends them, and records the outcome as events. The pod's worker is the only caller for that
// pod; calls for different pods may run at the same time.
package runtime
