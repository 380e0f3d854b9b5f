package server

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/why"
	"swiftlet/test/stepclock"
)

// onePod has one pod, with its status, and none in the runtime.
type onePod struct {
	*v1.Pod
	changed func()
}

func (o *onePod) List() []*v1.Pod                      { return []*v1.Pod{o.Pod} }
func (o *onePod) GetByFullName(string) (*v1.Pod, bool) { return o.Pod, true }
func (o *onePod) Get(types.UID) (v1.PodStatus, bool)   { return o.Status, true }
func (o *onePod) Subscribe(changed func())             { o.changed = changed }

type noneObserved struct{}

func (noneObserved) Get(types.UID) (pod.Observed, bool) { return pod.Observed{}, false }
func (noneObserved) List() []pod.Observed               { return nil }

// TestBoardNotes: a pod has a note once a step takes long or has failed, and none when it is up.
func TestBoardNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, tracker := clock.RealClock{}, why.New()
		one := &onePod{Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
			Spec:       v1.PodSpec{Volumes: []v1.Volume{{Name: "data"}}, Containers: []v1.Container{{Name: "app", Image: "x"}}},
			Status:     v1.PodStatus{Phase: v1.PodPending},
		}}
		view, err := NewPodView(PodViewDeps{Desired: one, Observer: noneObserved{}, Statuses: one})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var notes []string
		take := func() (taken []string) {
			mu.Lock()
			defer mu.Unlock()
			taken, notes = notes, nil
			return taken
		}
		board := NewBoard(BoardConfig{
			View: view, Clock: clock,
			Why: WhyView{Steps: tracker, Statuses: one, Clock: clock, Processes: func(types.UID) ([]why.Process, error) {
				return []why.Process{{PID: 7, Name: "web", State: "S"}}, nil
			}},
			Show: func(_ *v1.Pod, note string) {
				mu.Lock()
				defer mu.Unlock()
				notes = append(notes, note)
			},
			Forget: func(types.UID) {},
		})
		go func() { _ = board.Run(t.Context()) }()
		// after waits for the notes that a change, or the time alone, leads to.
		after := func(change func(), wait time.Duration, want string) {
			t.Helper()
			if change != nil {
				change()
				one.changed()
			}
			time.Sleep(wait)
			synctest.Wait()
			if notes := take(); len(notes) == 0 || !strings.Contains(notes[len(notes)-1], want) || want == "" && notes[len(notes)-1] != "" {
				t.Errorf("notes %q, want at last %q", notes, want)
			}
		}
		mount, image := why.Step{Kind: why.Volume, Name: "data"}, why.Step{Kind: why.Image, Name: "app"}
		after(func() {
			tracker.Track(one.Pod, why.Starting, nil, clock.Now())
			tracker.Begin("u", mount, clock.Now())
		}, time.Second, "")
		after(nil, noteInterval, "volume data: its mount has not come back; fix what")
		after(func() {
			tracker.End("u", mount, nil, clock.Now(), time.Time{})
			tracker.End("u", image, why.Because(why.ImageNotFound, "", errors.New("404")), clock.Now(), clock.Now().Add(time.Minute))
		}, 0, "container app: image x does not exist in the registry (404); fix spec.containers[0].image")
		after(func() {
			tracker.End("u", image, nil, clock.Now(), time.Time{})
			one.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
		}, 0, "")
		stop := why.Step{Kind: why.Kill, Name: "app"}
		after(func() {
			tracker.Track(one.Pod, why.Stopping, nil, clock.Now())
			tracker.Begin("u", stop, clock.Now())
		}, time.Second, "")
		after(nil, noteInterval, "process 7 web in state S")
		after(func() {
			tracker.End("u", stop, nil, clock.Now(), time.Time{})
			tracker.Track(one.Pod, why.Starting, nil, clock.Now())
		}, 0, "")
		time.Sleep(time.Hour)
		synctest.Wait()
		if notes := take(); len(notes) > 0 {
			t.Errorf("a pod that is up was shown %d times in an hour without a change", len(notes))
		}
	})
}

// TestBoardNotesAcrossClockStep: a pod whose step hangs, or whose container is not ready, has its note after the same
// time whichever way the clock is set.
func TestBoardNotesAcrossClockStep(t *testing.T) {
	for name, c := range map[string]struct {
		step  time.Duration
		ready bool // the container runs, and its probe has not passed
	}{
		"mount, an hour back": {-time.Hour, false}, "mount, an hour ahead": {time.Hour, false},
		"probe, an hour back": {-time.Hour, true}, "probe, an hour ahead": {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock, tracker := new(stepclock.Clock), why.New()
				one := &onePod{Pod: &v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
					Spec:       v1.PodSpec{Volumes: []v1.Volume{{Name: "data"}}, Containers: []v1.Container{{Name: "app", Image: "x", ReadinessProbe: &v1.Probe{}}}},
				}}
				view, err := NewPodView(PodViewDeps{Desired: one, Observer: noneObserved{}, Statuses: one})
				if err != nil {
					t.Fatal(err)
				}
				var mu sync.Mutex
				var last string
				board := NewBoard(BoardConfig{
					View: view, Clock: clock, Why: WhyView{Steps: tracker, Statuses: one, Clock: clock},
					Show: func(_ *v1.Pod, note string) {
						mu.Lock()
						defer mu.Unlock()
						last = note
					},
					Forget: func(types.UID) {},
				})
				go func() { _ = board.Run(t.Context()) }()
				check := func(when string, want bool) {
					t.Helper()
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if (last != "") != want {
						t.Errorf("%s the note is %q", when, last)
					}
				}
				tracker.Track(one.Pod, why.Starting, nil, clock.Now())
				if c.ready {
					one.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
						Name: "app", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(clock.Wall())}},
					}}}
				} else {
					tracker.Begin("u", why.Step{Kind: why.Volume, Name: "data"}, clock.Now())
				}
				one.changed()
				synctest.Wait()
				time.Sleep(time.Second)
				clock.Step(c.step)
				one.changed()
				check("a second after the begin", false)
				time.Sleep(2 * noteInterval)
				check("some seconds later", true)
			})
		})
	}
}
