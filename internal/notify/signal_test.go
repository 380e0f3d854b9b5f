package notify

import "testing"

func TestSignal(t *testing.T) {
	s := New()
	pending := func() bool {
		select {
		case <-s:
			return true
		default:
			return false
		}
	}
	if pending() {
		t.Error("a new signal has a notification")
	}
	s.Notify()
	s.Notify()
	if !pending() {
		t.Error("the notification is lost")
	}
	if pending() {
		t.Error("two notifications are two, want one")
	}
}
