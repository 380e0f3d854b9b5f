package volume

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// broken is a plugin that panics once.
type broken struct {
	plugin.Plugin
	panics int
}

func (*broken) Name() string { return "test/broken" }

func (*broken) Handles(s plugin.Spec) bool { return s.Volume != nil && s.Volume.Glusterfs != nil }

func (b *broken) SetUp(context.Context, plugin.Request) (plugin.Result, error) {
	if b.panics++; b.panics == 1 {
		panic("broken plugin")
	}
	return plugin.Result{HostPath: "/"}, nil
}

// A panic of a plugin is a failed attempt to mount its volume.
func TestPanicOfPluginIsFailedMount(t *testing.T) {
	n := newNode(t)
	n.stop()
	n.kinds = []plugin.Plugin{&broken{}}
	n.start()
	p := n.pod(v1.VolumeSource{Glusterfs: &v1.GlusterfsVolumeSource{}})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	began := time.Now()
	if _, err := n.Mount(ctx, p); err != nil {
		t.Fatal(err)
	}
	if time.Since(began) < retries.First {
		t.Error("retried without back-off")
	}
	if !n.events.has("panic: broken plugin") {
		t.Errorf("no event names the panic: %s", strings.Join(n.events.recorded, "; "))
	}
}

// brokenUnstage is a driver that panics the first time it unstages.
type brokenUnstage struct {
	*driver
	panics int
}

func (b *brokenUnstage) Unstage(ctx context.Context, id string) error {
	if b.panics++; b.panics == 1 {
		panic("broken driver")
	}
	return b.driver.Unstage(ctx, id)
}

// A panic while a volume is unstaged is a failed attempt. No pod's worker waits for it.
func TestPanicOfUnstageIsRetried(t *testing.T) {
	n, d, source := newDriver(t)
	n.kinds = []plugin.Plugin{&brokenUnstage{driver: d}}
	n.restart()
	n.mount(n.podNamed("a", source))
	n.unmount("a")
	poll.Until(t, "the device to be unstaged", func() bool { return strings.HasSuffix(d.called(), "unstage disk") })
}
