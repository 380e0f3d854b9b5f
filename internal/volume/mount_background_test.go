package volume

import (
	"errors"
	"testing"

	"swiftlet/test/poll"
)

// TestKeepRetriesUntilDriverIsRegistered: after a restart the volume of a running pod is mounted in the
// background once its driver is registered.
func TestKeepRetriesUntilDriverIsRegistered(t *testing.T) {
	n, d, source := newDriver(t)
	n.mount(n.podNamed("a", source))
	d.fail("stage", errors.New("driver name x not found in the list of registered CSI drivers"))
	n.restart()
	useFakeClock(n) // no back-off expires
	p := n.podNamed("a", source)
	n.Keep(p)
	n.Keep(p) // idempotent
	poll.Until(t, "the event", func() bool { return n.events.has("driver name x not found") })
	if len(n.MountedVolumes("a")) != 0 {
		t.Fatal("mounted without its driver")
	}
	d.fail("", nil)
	poll.Until(t, "the volume", func() bool { n.Retry(); return len(n.MountedVolumes("a")) == 1 })
	n.unmount("a")
}

// TestKeepEndsWithUnmount: its back-off does not delay Unmount.
func TestKeepEndsWithUnmount(t *testing.T) {
	n := newNode(t)
	p := n.pod(configMapSource("never", false))
	n.Keep(p)
	poll.Until(t, "the first failure", func() bool { return n.events.has("not found") })
	n.unmount(p.UID)
}
