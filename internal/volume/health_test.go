package volume

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/volume/plugin"
	"swiftlet/test/poll"
)

// healthReporter is a driver that reports the health of its volumes.
type healthReporter struct {
	*driver
	mu         sync.Mutex
	conditions []v1.VolumeHealthCondition
	err        error
	calls      int
	mounted    bool // at the last call
}

func (d *healthReporter) Health(_ context.Context, r plugin.Request, at plugin.Result) ([]v1.VolumeHealthCondition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	d.mounted = at.HostPath != ""
	return d.conditions, d.err
}

func (d *healthReporter) set(err error, conditions ...v1.VolumeHealthCondition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conditions, d.err = conditions, err
}

func (d *healthReporter) last() (calls int, mounted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls, d.mounted
}

func newHealthNode(t *testing.T) (*node, *healthReporter, *clocktesting.FakeClock, v1.VolumeSource, <-chan types.UID) {
	n := newNode(t)
	d := &healthReporter{driver: &driver{root: n.root}}
	clock := clocktesting.NewFakeClock(time.Now())
	n.kinds, n.clock = []plugin.Plugin{d}, clock
	n.restart()
	changed := make(chan types.UID, 100)
	n.cfg.HealthPeriod, n.deps.Changed.Health = time.Minute, func(uid types.UID) { changed <- uid }
	return n, d, clock, n.claimed(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "disk"}}), changed
}

func TestHealthOfVolumes(t *testing.T) {
	n, d, clock, source, changed := newHealthNode(t)
	slow := v1.VolumeHealthCondition{Status: v1.VolumeHealthDegraded, Reason: "Slow"}
	lost := v1.VolumeHealthCondition{Status: v1.VolumeHealthDataLoss, Reason: "Lost"}
	before := []v1.PodVolumeHealth{{Name: "vol", HealthConditions: []v1.VolumeHealthCondition{slow}, LastTransitionTime: metav1.Unix(1, 0)}}
	if got := n.Health("a", before); got != nil {
		t.Errorf("known before the first check: %v", got)
	}
	d.set(nil, slow)
	n.mount(n.podNamed("a", source))
	if uid := <-changed; uid != "a" {
		t.Errorf("%s changed", uid)
	}
	// Conditions that an earlier agent published keep their time.
	shown := n.Health("a", before)
	if !reflect.DeepEqual(shown, before) {
		t.Errorf("shows %v, want %v", shown, before)
	}
	nextCheck := func() {
		t.Helper()
		was, _ := d.last()
		poll.Until(t, "a timer", clock.HasWaiters)
		clock.Step(time.Minute)
		poll.Until(t, "a health check", func() bool { now, _ := d.last(); return now > was })
	}
	nextCheck()
	if len(changed) > 0 {
		t.Error("notified without a change")
	}
	d.set(nil, lost, slow)
	nextCheck()
	<-changed
	shown = n.Health("a", shown)
	if len(shown) != 1 || len(shown[0].HealthConditions) != 2 || shown[0].LastTransitionTime.Unix() != clock.Now().Unix() {
		t.Errorf("shows %v", shown)
	}
	d.set(errors.New("no answer"))
	nextCheck()
	if len(changed) > 0 || !reflect.DeepEqual(n.Health("a", shown), shown) {
		t.Error("a failed check caused a change")
	}
	d.set(nil)
	nextCheck()
	<-changed
	if got := n.Health("a", shown); got == nil || len(got) > 0 {
		t.Errorf("shows %v for a recovered volume", got)
	}
	n.unmount("a")
	if _, waits := n.due.first(); waits {
		t.Error("checks are still scheduled")
	}
}

// TestHealthOfUnmountedVolume: a volume that cannot be mounted is checked as well.
func TestHealthOfUnmountedVolume(t *testing.T) {
	n, d, _, source, changed := newHealthNode(t)
	d.fail("stage", errors.New("input/output error"))
	d.set(nil, v1.VolumeHealthCondition{Status: v1.VolumeHealthInaccessible, Reason: "Broken"})
	ctx, cancel := context.WithCancel(t.Context())
	p, done := n.podNamed("a", source), make(chan struct{})
	go func() { defer close(done); _, _ = n.Mount(ctx, p) }()
	<-changed
	if got := n.Health("a", nil); len(got) != 1 || got[0].Name != "vol" || got[0].HealthConditions[0].Reason != "Broken" {
		t.Errorf("shows %v", got)
	}
	if _, mounted := d.last(); mounted {
		t.Error("checked as if it were mounted")
	}
	cancel()
	<-done
}

func TestNoHealthChecksWithoutPeriod(t *testing.T) {
	n, d, _, source, _ := newHealthNode(t)
	n.cfg.HealthPeriod = 0
	n.mount(n.podNamed("a", source))
	if _, waits := n.due.first(); waits {
		t.Error("checks are scheduled")
	}
	if calls, _ := d.last(); calls > 0 || n.Health("a", nil) != nil {
		t.Error("health was checked")
	}
}
