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

// doctor is a driver that tells how its volumes fare.
type doctor struct {
	*driver
	mu      sync.Mutex
	ails    []v1.VolumeHealthCondition
	err     error
	visits  int
	mounted bool // at the last visit
}

func (d *doctor) Health(_ context.Context, r plugin.Request, at plugin.Result) ([]v1.VolumeHealthCondition, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.visits++
	d.mounted = at.HostPath != ""
	return d.ails, d.err
}

func (d *doctor) say(err error, ails ...v1.VolumeHealthCondition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ails, d.err = ails, err
}

func (d *doctor) seen() (visits int, mounted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.visits, d.mounted
}

func newClinic(t *testing.T) (*node, *doctor, *clocktesting.FakeClock, v1.VolumeSource, <-chan types.UID) {
	n := newNode(t)
	d := &doctor{driver: &driver{root: n.root}}
	clock := clocktesting.NewFakeClock(time.Now())
	n.kinds, n.clock = []plugin.Plugin{d}, clock
	n.restart()
	changed := make(chan types.UID, 100)
	n.cfg.HealthPeriod, n.deps.HealthChanged = time.Minute, func(uid types.UID) { changed <- uid }
	return n, d, clock, n.claimed(v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "disk"}}), changed
}

func TestHealthOfVolumes(t *testing.T) {
	n, d, clock, source, changed := newClinic(t)
	slow := v1.VolumeHealthCondition{Status: v1.VolumeHealthDegraded, Reason: "Slow"}
	lost := v1.VolumeHealthCondition{Status: v1.VolumeHealthDataLoss, Reason: "Lost"}
	before := []v1.PodVolumeHealth{{Name: "vol", HealthConditions: []v1.VolumeHealthCondition{slow}, LastTransitionTime: metav1.Unix(1, 0)}}
	if got := n.Health("a", before); got != nil {
		t.Errorf("known before anybody looked: %v", got)
	}
	d.say(nil, slow)
	n.mount(n.podNamed("a", source))
	if uid := <-changed; uid != "a" {
		t.Errorf("%s changed", uid)
	}
	// What an earlier agent showed keeps its time.
	shown := n.Health("a", before)
	if !reflect.DeepEqual(shown, before) {
		t.Errorf("shows %v, want %v", shown, before)
	}
	look := func() {
		t.Helper()
		was, _ := d.seen()
		poll.Until(t, "somebody to wait", clock.HasWaiters)
		clock.Step(time.Minute)
		poll.Until(t, "a visit", func() bool { now, _ := d.seen(); return now > was })
	}
	look()
	if len(changed) > 0 {
		t.Error("told of no change")
	}
	d.say(nil, lost, slow)
	look()
	<-changed
	shown = n.Health("a", shown)
	if len(shown) != 1 || len(shown[0].HealthConditions) != 2 || shown[0].LastTransitionTime.Unix() != clock.Now().Unix() {
		t.Errorf("shows %v", shown)
	}
	d.say(errors.New("no answer"))
	look()
	if len(changed) > 0 || !reflect.DeepEqual(n.Health("a", shown), shown) {
		t.Error("a failure was taken for a change")
	}
	d.say(nil)
	look()
	<-changed
	if got := n.Health("a", shown); got == nil || len(got) > 0 {
		t.Errorf("shows %v of a volume that has recovered", got)
	}
	n.unmount("a")
	if _, waits := n.due.first(); waits {
		t.Error("still looked after")
	}
}

// TestHealthOfAVolumeThatDoesNotComeUp: that may be why.
func TestHealthOfAVolumeThatDoesNotComeUp(t *testing.T) {
	n, d, _, source, changed := newClinic(t)
	d.fail("stage", errors.New("input/output error"))
	d.say(nil, v1.VolumeHealthCondition{Status: v1.VolumeHealthInaccessible, Reason: "Broken"})
	ctx, cancel := context.WithCancel(t.Context())
	p, done := n.podNamed("a", source), make(chan struct{})
	go func() { defer close(done); _, _ = n.Mount(ctx, p) }()
	<-changed
	if got := n.Health("a", nil); len(got) != 1 || got[0].Name != "vol" || got[0].HealthConditions[0].Reason != "Broken" {
		t.Errorf("shows %v", got)
	}
	if _, mounted := d.seen(); mounted {
		t.Error("asked as if it were up")
	}
	cancel()
	<-done
}

func TestHealthIsNotAskedForUnbidden(t *testing.T) {
	n, d, _, source, _ := newClinic(t)
	n.cfg.HealthPeriod = 0
	n.mount(n.podNamed("a", source))
	if _, waits := n.due.first(); waits {
		t.Error("looked after")
	}
	if visits, _ := d.seen(); visits > 0 || n.Health("a", nil) != nil {
		t.Error("asked")
	}
}
