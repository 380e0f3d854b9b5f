// Package notify wakes a goroutine without waiting for it.
package notify

// Signal holds at most one notification: further ones coalesce until it is received. Receive
// from it as from any channel; only Notify may send.
type Signal chan struct{}

// New returns a Signal without a notification.
func New() Signal { return make(Signal, 1) }

// Notify sends a notification, unless one is pending. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
