// Package notify wakes a goroutine without waiting for it.
package notify

// Signal holds at most one notification. A receiver that has yet to take it sees the reason
// for a later one, too. Receive from it as from any channel; only Notify may send.
type Signal chan struct{}

// New returns a signal without a notification.
func New() Signal { return make(Signal, 1) }

// Notify never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
