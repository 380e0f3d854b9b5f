package volume

import (
	"errors"
	"testing"

	"swiftlet/test/poll"
)

// TestMountInBackgroundRetriesUntilDriverIsRegistered: after a restart the volume of a running pod is mounted in the
// background once its driver is registered.
func TestMountInBackgroundRetriesUntilDriverIsRegistered(t *testing.T) {
	n, d, source := newDriver(t)
	n.mount(n.podNamed("a", source))
	d.fail("stage", errors.New("driver name x not found in the list of registered CSI drivers"))
	n.restart()
	useFakeClock(n) // no back-off expires
	p := n.podNamed("a", source)
	n.MountInBackground(p)
	n.MountInBackground(p) // idempotent
	poll.Until(t, "the event", func() bool { return n.events.has("driver name x not found") })
	if len(n.MountedVolumes("a")) != 0 {
		t.Fatal("mounted without its driver")
	}
	d.fail("", nil)
	poll.Until(t, "the volume", func() bool { n.Retry(); return len(n.MountedVolumes("a")) == 1 })
	n.unmount("a")
}

// TestMountInBackgroundEndsWithUnmount: its back-off does not delay Unmount.
func TestMountInBackgroundEndsWithUnmount(t *testing.T) {
	n := newNode(t)
	p := n.pod(configMapSource("never", false))
	n.MountInBackground(p)
	poll.Until(t, "the first failure", func() bool { return n.events.has("not found") })
	n.unmount(p.UID)
}
