package pluginreg

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRegistersExistingSockets(t *testing.T) {
	dir := newDir(t)
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, filepath.Join(dir, ".hidden.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "hidden"}})
	p := serve(t, filepath.Join(deep, "one.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "one", Endpoint: "/x/csi.sock"}})
	h := newHandler()
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register one csi.sock")
	if s := p.status(t); !s.PluginRegistered || s.Error != "" {
		t.Errorf("plugin status is %v", s)
	}
	if len(h.calls) != 0 {
		t.Errorf("unexpected: %s", <-h.calls)
	}
}

func TestFollowsSocketsInSubdirectories(t *testing.T) {
	dir := newDir(t)
	h := newHandler()
	first := filepath.Join(dir, "first.sock")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start(t, dir, h, clock.RealClock{})
	p := serve(t, first, &fakePlugin{info: &registration.PluginInfo{Name: "first"}})
	h.expect(t, "register first first.sock")
	p.status(t)

	// In a directory that is created later, with its parent.
	deep := filepath.Join(dir, "x", "y")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, filepath.Join(deep, "deep.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "deep"}})
	h.expect(t, "register deep deep.sock")

	p.server.Stop()
	h.expect(t, "deregister first")
	serve(t, first, &fakePlugin{info: &registration.PluginInfo{Name: "first"}})
	h.expect(t, "register first first.sock")

	// Renaming a directory away deregisters its plugins.
	if err := os.Rename(filepath.Join(dir, "x"), dir+"-away"); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "deregister deep")
}

// TestSockets: one plugin is registered, the other has a type without a handler.
func TestSockets(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	good, bad := filepath.Join(dir, "good.sock"), filepath.Join(dir, "bad.sock")
	p := serve(t, good, &fakePlugin{info: &registration.PluginInfo{Name: "good"}})
	serve(t, bad, &fakePlugin{info: &registration.PluginInfo{Name: "bad", Type: "Strange"}})
	h := newHandler()
	r, _ := startRegistry(t, dir, h, clock.RealClock{})
	await := func(want map[string]bool) {
		t.Helper()
		for end := time.Now().Add(patience); !maps.Equal(r.Sockets(), want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("sockets are %v, want %v", r.Sockets(), want)
			}
		}
	}
	await(map[string]bool{good: true, bad: false})
	p.server.Stop()
	await(map[string]bool{bad: false})
}

func TestReplacedSocketIsRegisteredAgain(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p.sock")
	old := serve(t, path, &fakePlugin{info: &registration.PluginInfo{Name: "p", Endpoint: "/old.sock"}})
	h := newHandler()
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register p old.sock")
	old.status(t)
	// Replaced by a rename, so that the path is never missing.
	old.listener.SetUnlinkOnClose(false)
	serve(t, filepath.Join(dir, ".next"), &fakePlugin{info: &registration.PluginInfo{Name: "p", Endpoint: "/new.sock"}}).
		listener.SetUnlinkOnClose(false)
	if err := os.Rename(filepath.Join(dir, ".next"), path); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "deregister p", "register p new.sock")
}

func TestDirectoryIsRecreatedAfterRemoval(t *testing.T) {
	dir := newDir(t)
	h := newHandler()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p.sock")
	serve(t, path, &fakePlugin{info: &registration.PluginInfo{Name: "p"}}).listener.SetUnlinkOnClose(false)
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register p p.sock")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "deregister p")
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the directory is not created again")
		}
	}
	serve(t, path, &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	h.expect(t, "register p p.sock")
}

// A plugin that accepts connections and never answers delays no other.
func TestHungPluginDelaysNoOther(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	hung, err := net.Listen("unix", filepath.Join(dir, "a-hung.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	serve(t, filepath.Join(dir, "b.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "b"}})
	h := newHandler()
	stop := start(t, dir, h, clocktesting.NewFakeClock(time.Now()))
	h.expect(t, "register b b.sock")
	stop() // does not wait for the deadline of the hung plugin
}

// A slow handler delays no other plugin; its context is cancelled when the socket is removed.
func TestSlowHandlerDelaysNoOther(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	slow := serve(t, filepath.Join(dir, "a.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "slow"}})
	h := newHandler()
	ended := make(chan struct{})
	h.register = func(ctx context.Context, p Plugin) error {
		if p.Name == "slow" {
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		}
		return nil
	}
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register slow a.sock")
	serve(t, filepath.Join(dir, "b.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "quick"}})
	h.expect(t, "register quick b.sock")
	slow.server.Stop()
	receive(t, ended, "end of the slow registration")
}

func TestRejectedPluginIsNotifiedAndRetried(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string // CSIPlugin if empty
		validate error
		register error
		want     string
	}{
		"type without handler": {
			kind: "Unknown",
			want: "RegisterPlugin error -- no handler registered for plugin type: Unknown at socket ",
		},
		"validation fails": {
			validate: errors.New("too old"),
			want:     "RegisterPlugin error -- plugin validation failed with err: too old",
		},
		"registration fails": {
			register: errors.New("no node"),
			want:     "RegisterPlugin error -- plugin registration failed with err: no node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			p := serve(t, filepath.Join(dir, "p.sock"), &fakePlugin{info: &registration.PluginInfo{Type: c.kind}})
			h := newHandler()
			h.validate = func(Plugin) error { return c.validate }
			h.register = func(context.Context, Plugin) error { return c.register }
			fake := clocktesting.NewFakeClock(time.Now())
			start(t, dir, h, fake)
			// Notified at each attempt, with twice the time between.
			for _, wait := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
				if s := p.status(t); s.PluginRegistered || !strings.HasPrefix(s.Error, c.want) {
					t.Fatalf("plugin status is %v, want %q", s, c.want)
				}
				advance(t, fake, wait-1)
				if len(p.statuses) != 0 {
					t.Fatalf("tried again before %v", wait)
				}
				fake.Step(1)
			}
		})
	}
}

// A plugin that is rejected because another has its name is registered when that one is
// deregistered, without waiting for the back-off.
func TestPluginIsRegisteredOnceItsNameIsFree(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	old := serve(t, filepath.Join(dir, "old.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	h := newHandler()
	var taken atomic.Bool
	h.register = func(context.Context, Plugin) error {
		if taken.Load() {
			return errors.New("the name is taken")
		}
		return nil
	}
	start(t, dir, h, clocktesting.NewFakeClock(time.Now()))
	h.expect(t, "register p old.sock")
	old.status(t)
	taken.Store(true)
	// It listens before it has its name: the clock does not move to retry a refused connection.
	successor := serve(t, filepath.Join(dir, ".new"), &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	successor.listener.SetUnlinkOnClose(false)
	if err := os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, "new.sock")); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "register p new.sock")
	if s := successor.status(t); s.PluginRegistered {
		t.Fatal("registered while the old one is")
	}
	taken.Store(false)
	old.server.Stop()
	h.expect(t, "deregister p", "register p new.sock")
}

// A plugin that cannot be notified is not used: it may assume that it was rejected.
func TestPluginIsDeregisteredIfNotNotified(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, filepath.Join(dir, "p.sock"), &fakePlugin{failNotify: true, info: &registration.PluginInfo{Name: "p"}})
	h := newHandler()
	fake := clocktesting.NewFakeClock(time.Now())
	start(t, dir, h, fake)
	h.expect(t, "register p p.sock", "deregister p")
	advance(t, fake, firstRetry-1)
	if len(h.calls) != 0 {
		t.Fatalf("retried without back-off: %s", <-h.calls)
	}
	fake.Step(1)
	h.expect(t, "register p p.sock", "deregister p")
}

// The end of Run deregisters no plugin.
func TestPluginsStayRegisteredWhenRunEnds(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := serve(t, filepath.Join(dir, "p.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	h := newHandler()
	stop := start(t, dir, h, clock.RealClock{})
	h.expect(t, "register p p.sock")
	p.status(t)
	stop()
	if len(h.calls) != 0 {
		t.Errorf("handler call %q", <-h.calls)
	}
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register p p.sock")
}
