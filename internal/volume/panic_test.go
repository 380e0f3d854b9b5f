package volume

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
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
