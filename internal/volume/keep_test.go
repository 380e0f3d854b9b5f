package volume

import (
	"errors"
	"testing"

	"swiftlet/test/poll"
)

// TestKeepFollowsTheDriver: after a restart of the agent a running pod's volume is looked
// after as soon as its driver is back, however long that takes, and nobody waits for it.
func TestKeepFollowsTheDriver(t *testing.T) {
	n, d, source := newDriver(t)
	n.mount(n.podNamed("a", source))
	d.fail("stage", errors.New("driver name x not found in the list of registered CSI drivers"))
	n.restart()
	heldBack(n) // only events help
	p := n.podNamed("a", source)
	n.Keep(p)
	n.Keep(p) // once is enough
	poll.Until(t, "the reason", func() bool { return n.events.has("driver name x not found") })
	if len(n.MountedVolumes("a")) != 0 {
		t.Fatal("mounted without its driver")
	}
	d.fail("", nil)
	poll.Until(t, "the volume", func() bool { n.Retry(); return len(n.MountedVolumes("a")) == 1 })
	n.unmount("a")
}

// TestKeepEndsWithItsPod: an end of the pod is not held up by a wait.
func TestKeepEndsWithItsPod(t *testing.T) {
	n := newNode(t)
	p := n.pod(configMapSource("never", false))
	n.Keep(p)
	poll.Until(t, "it to wait", func() bool { return n.events.has("not found") })
	n.unmount(p.UID)
}
