package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

func (n *node) updateConfigMap(version, value string) {
	n.t.Helper()
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "obj", Namespace: "ns", ResourceVersion: version}, Data: map[string]string{"key": value}}
	if _, err := n.client.CoreV1().ConfigMaps("ns").Update(context.Background(), cm, metav1.UpdateOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

func configMapSource(name string, optional bool) v1.VolumeSource {
	return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: named(name), DefaultMode: mode(0o644), Optional: &optional}}
}

// useFakeClock restarts the agent with a stopped clock, so that only events end a wait.
func useFakeClock(n *node) *testclock.FakeClock {
	clk := testclock.NewFakeClock(time.Now())
	n.stop()
	n.clock = clk
	n.start()
	return clk
}

func TestConfigMapChangeUpdatesFiles(t *testing.T) {
	n := newNode(t)
	useFakeClock(n)
	dir := n.mount(n.pod(configMapSource("obj", false)))
	n.updateConfigMap("2", "changed")
	poll.Until(t, "the new content", reads("changed", dir, "key"))
	if _, err := os.Lstat(filepath.Join(dir, "other")); err == nil {
		poll.Until(t, "the removed key to go", func() bool { _, err := os.Lstat(filepath.Join(dir, "other")); return err != nil })
	}
}

func TestLabelChangeUpdatesFiles(t *testing.T) {
	n := newNode(t)
	useFakeClock(n)
	p := n.pod(kinds[4].source)
	dir := n.mount(p)
	changed := p.DeepCopy()
	changed.Labels["app"] = "db"
	n.Update(changed)
	poll.Until(t, "the new label", reads(`app="db"`, dir, "labels"))
}

func TestMountSucceedsOnceObjectIsCreated(t *testing.T) {
	n := newNode(t)
	useFakeClock(n)
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), n.pod(configMapSource("late", false))); done <- err }()
	const recorded = `FailedMount: MountVolume.SetUp failed for volume "vol" : configmap "late" not found`
	poll.Until(t, "the event", func() bool { return n.events.has(recorded) })
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "ns", ResourceVersion: "5"}}
	if _, err := n.client.CoreV1().ConfigMaps("ns").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("not mounted after the object was created")
	}
}

func TestOptionalObjectCreatedLater(t *testing.T) {
	n := newNode(t)
	dir := n.mount(n.pod(configMapSource("late", true)))
	cm := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "ns", ResourceVersion: "5"}, Data: map[string]string{"k": "v"}}
	if _, err := n.client.CoreV1().ConfigMaps("ns").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the object to appear in the volume", reads("v", dir, "k"))
}

func TestDeletedObjectKeepsFiles(t *testing.T) {
	n := newNode(t)
	dir := n.mount(n.pod(configMapSource("obj", false)))
	if err := n.client.CoreV1().ConfigMaps("ns").Delete(t.Context(), "obj", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the event", func() bool { return n.events.has("not found") })
	if got := readFile(t, dir, "key"); got != "value" {
		t.Errorf("the file holds %q", got)
	}
}

func TestTokenIsRenewed(t *testing.T) {
	n := newNode(t)
	clk := useFakeClock(n)
	dir := n.mount(n.pod(kinds[5].source))
	first := readFile(t, dir, "token")
	poll.Until(t, "the timer", clk.HasWaiters)
	clk.Step(3000 * time.Second) // 83 % of its lifetime
	poll.Until(t, "a new token", readsOther(first, dir, "token"))
}

func TestUnmountEndsMount(t *testing.T) {
	n := newNode(t)
	done := make(chan error, 1)
	p := n.pod(configMapSource("never", false))
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	poll.Until(t, "the mount to wait", func() bool { return n.events.has("not found") })
	if err := n.Unmount(t.Context(), p.UID); err != nil {
		t.Fatal(err)
	}
	var missing *MountError
	select {
	case err := <-done:
		if !errors.As(err, &missing) || !errors.Is(err, context.Canceled) {
			t.Errorf("the mount ended with %v", err)
		}
	case <-time.After(testTimeout):
		t.Error("the mount still waits after unmount")
	}
	if uids, _ := n.MountedPods(); len(uids) != 0 {
		t.Errorf("left: %v", uids)
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}
	for i, w := range want {
		if got := retries.After(i + 1); got != w {
			t.Errorf("after %d failures: %v, want %v", i+1, got, w)
		}
	}
	if got := retries.After(1000); got != retries.Longest {
		t.Errorf("after many failures: %v, want %v", got, retries.Longest)
	}
}

func TestMountAfterRunReturnsAtOnce(t *testing.T) {
	n := newNode(t)
	p := n.pod(configMapSource("obj", false))
	n.stop()
	if _, err := n.Mount(t.Context(), p); !errors.Is(err, context.Canceled) {
		t.Errorf("mount after the end of Run: %v", err)
	}
}

// TestHangingSetUpAffectsOneVolume: other pods do not wait for it.
func TestHangingSetUpAffectsOneVolume(t *testing.T) {
	n := newNode(t)
	hung := &hangingPlugin{Plugin: n.plugins[0], release: make(chan struct{}), begun: make(chan struct{})}
	n.plugins = append([]plugin.Plugin{hung}, n.plugins...)
	ctx, cancel := context.WithCancel(t.Context())
	stuck := n.pod(v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}})
	stuck.UID = "uid-stuck"
	done := make(chan error, 1)
	go func() { _, err := n.Mount(ctx, stuck); done <- err }()
	<-hung.begun
	n.mount(n.pod(configMapSource("obj", false)))
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "still being set up") {
		t.Errorf("mount that hangs: %v", err)
	}
	short, cancelShort := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelShort()
	if err := n.Unmount(short, "uid-stuck"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unmount during a hanging operation: %v, want it to wait", err)
	}
	close(hung.release)
	if err := n.Unmount(t.Context(), "uid-stuck"); err != nil {
		t.Errorf("unmount afterwards: %v", err)
	}
}

type hangingPlugin struct {
	plugin.Plugin
	begun, release chan struct{}
}

func (h *hangingPlugin) SetUp(ctx context.Context, r plugin.Request) (plugin.Result, error) {
	close(h.begun)
	<-h.release
	return h.Plugin.SetUp(ctx, r)
}

// overdue is a plugin whose volume is always due for a refresh.
type overdue struct {
	plugin.Plugin
	setUps atomic.Int32
}

func (*overdue) Name() string { return "test/overdue" }

func (*overdue) Handles(s plugin.Spec) bool { return s.Volume != nil && s.Volume.Glusterfs != nil }

func (o *overdue) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	o.setUps.Add(1)
	return plugin.Result{HostPath: "/", RefreshAt: r.Clock.Now().Add(-time.Hour)}, nil
}

// A token whose time to refresh has passed when it is issued must not be requested in a loop.
func TestOverdueRefreshIsDelayed(t *testing.T) {
	n := newNode(t)
	n.stop()
	fake, o := testclock.NewFakeClock(time.Now()), &overdue{}
	n.clock, n.kinds = fake, []plugin.Plugin{o}
	n.start()
	n.mount(n.pod(v1.VolumeSource{Glusterfs: &v1.GlusterfsVolumeSource{}}))
	for i := range int32(3) {
		poll.Until(t, "the timer of the next refresh", fake.HasWaiters)
		if got := o.setUps.Load(); got != i+1 {
			t.Fatalf("%d attempts, want %d", got, i+1)
		}
		fake.Step(minRefreshDelay)
		poll.Until(t, "the refresh", func() bool { return o.setUps.Load() > i+1 })
	}
}
