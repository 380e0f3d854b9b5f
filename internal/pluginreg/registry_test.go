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

func TestSocketsThatAreThereAtTheStart(t *testing.T) {
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
		t.Errorf("plugin was told %v", s)
	}
	if len(h.calls) != 0 {
		t.Errorf("unexpected: %s", <-h.calls)
	}
}

func TestSocketsComeAndGo(t *testing.T) {
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

	// In a folder made later, and the folder of the folder.
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

	// A folder that is moved away takes its plugins with it.
	if err := os.Rename(filepath.Join(dir, "x"), dir+"-away"); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "deregister deep")
}

// TestSockets: one plugin is registered, the other is of a type that nobody works with.
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

func TestSocketReplacedAtOnce(t *testing.T) {
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
	// Replaced by a rename, as nothing would ever be seen missing.
	old.listener.SetUnlinkOnClose(false)
	serve(t, filepath.Join(dir, ".next"), &fakePlugin{info: &registration.PluginInfo{Name: "p", Endpoint: "/new.sock"}}).
		listener.SetUnlinkOnClose(false)
	if err := os.Rename(filepath.Join(dir, ".next"), path); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "deregister p", "register p new.sock")
}

func TestFolderRemovedAndMadeAgain(t *testing.T) {
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
			t.Fatal("the folder is not made again")
		}
	}
	serve(t, path, &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	h.expect(t, "register p p.sock")
}

// A socket that takes connections and never answers holds up no other.
func TestHungSocket(t *testing.T) {
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
	stop() // does not wait for the hung one's deadline
}

// So does a handler that takes its time; when the socket goes, it is told to stop.
func TestSlowHandler(t *testing.T) {
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

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		kind     string // CSIPlugin if empty
		validate error
		register error
		want     string
	}{
		"nobody works with its type": {
			kind: "Unheard",
			want: "RegisterPlugin error -- no handler registered for plugin type: Unheard at socket ",
		},
		"not valid": {
			validate: errors.New("too old"),
			want:     "RegisterPlugin error -- plugin validation failed with err: too old",
		},
		"not registered": {
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
			// Told again at each try, with twice the time between.
			for _, wait := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
				if s := p.status(t); s.PluginRegistered || !strings.HasPrefix(s.Error, c.want) {
					t.Fatalf("plugin was told %v, want %q", s, c.want)
				}
				advance(t, fake, wait-1)
				if len(p.told) != 0 {
					t.Fatalf("tried again before %v", wait)
				}
				fake.Step(1)
			}
		})
	}
}

// A plugin refused because another holds its name is registered when that one leaves,
// however far its next try would be.
func TestSuccessor(t *testing.T) {
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
	successor := serve(t, filepath.Join(dir, "new.sock"), &fakePlugin{info: &registration.PluginInfo{Name: "p"}})
	h.expect(t, "register p new.sock")
	if s := successor.status(t); s.PluginRegistered {
		t.Fatal("registered beside the old one")
	}
	taken.Store(false)
	old.server.Stop()
	h.expect(t, "deregister p", "register p new.sock")
}

// One that cannot be told is not used: it may believe that it was refused.
func TestPluginThatCannotBeTold(t *testing.T) {
	dir := newDir(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, filepath.Join(dir, "p.sock"), &fakePlugin{deaf: true, info: &registration.PluginInfo{Name: "p"}})
	h := newHandler()
	fake := clocktesting.NewFakeClock(time.Now())
	start(t, dir, h, fake)
	h.expect(t, "register p p.sock", "deregister p")
	advance(t, fake, firstRetry-1)
	if len(h.calls) != 0 {
		t.Fatalf("tried again at once: %s", <-h.calls)
	}
	fake.Step(1)
	h.expect(t, "register p p.sock", "deregister p")
}

// The end of the agent is not the end of the plugins.
func TestPluginsStayWhenTheAgentEnds(t *testing.T) {
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
		t.Errorf("handler was asked to %q", <-h.calls)
	}
	start(t, dir, h, clock.RealClock{})
	h.expect(t, "register p p.sock")
}
