package probe

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

func immediate() float64 { return 0 }

// All probes are due at once: few commands run concurrently, each has its whole timeout, and
// TCP probes do not wait for them.
func TestConcurrentCommandsAreBounded(t *testing.T) {
	withFakeNode(t, immediate, func(f *fakeNode) {
		for i := range 40 {
			f.set(name(i), 900*time.Millisecond)
			f.watch(name(i), time.Now(), nil, v1.Container{LivenessProbe: execProbe(60, 1)})
		}
		f.watch("tcp", time.Now(), nil, v1.Container{LivenessProbe: tcpProbe(1)})
		advance(10 * time.Second)
		if _, maxRunning := f.commands(); maxRunning != 2*execSlotsPerCore {
			t.Errorf("%d commands ran at the same time on two cores, want %d", maxRunning, 2*execSlotsPerCore)
		}
		for i := range 40 {
			if runs := f.ran(name(i)); len(runs) != 1 {
				t.Errorf("probe %d ran at %v, want once", i, runs)
			}
			if got := f.prober.Health(name(i)).Liveness; got != pod.Passed {
				t.Errorf("liveness of pod %d: %v", i, got)
			}
		}
		if events := f.events.lines(); len(events) > 0 {
			t.Errorf("events %q", events)
		}
		for i, at := range f.ran("tcp") {
			if at != time.Duration(i)*time.Second {
				t.Errorf("run %d of the TCP probe began after %v", i, at)
			}
		}
	})
}

// Commands that hang lose their slots, so that the others run nearly on time.
func TestHungCommandsReleaseTheirSlots(t *testing.T) {
	const hung, healthy, period = 12, 20, 5 * time.Second
	withFakeNode(t, evenly(hung+healthy), func(f *fakeNode) {
		for i := range hung + healthy {
			timeout, duration := int32(1), 10*time.Millisecond
			if i < hung {
				timeout, duration = 300, time.Hour
			}
			f.set(name(i), duration)
			f.watch(name(i), time.Now().Add(-time.Hour), nil, v1.Container{LivenessProbe: execProbe(5, timeout)})
		}
		advance(59*period - time.Millisecond)
		if now, _ := f.commands(); now != hung {
			t.Errorf("%d commands hang, want %d", now, hung)
		}
		for i := hung; i < hung+healthy; i++ {
			runs := f.ran(name(i))
			if len(runs) != 59 {
				t.Errorf("probe %d ran %d times in 59 periods", i, len(runs))
				continue
			}
			// The hung commands hold all slots for three seconds, once.
			due := time.Duration(i) * period / (hung + healthy)
			if late := runs[0] - due.Round(time.Millisecond); late < 0 || late > 3*time.Second {
				t.Errorf("probe %d ran %v late first", i, late)
			}
			for n, at := range runs[1:] {
				if want := (due + time.Duration(n+1)*period).Round(time.Millisecond); at != want {
					t.Errorf("run %d of probe %d began at %v, want %v", n+1, i, at, want)
					break
				}
			}
		}
	})
}

func TestCommandOfRemovedPodIsNotRun(t *testing.T) {
	withFakeNode(t, immediate, func(f *fakeNode) {
		for i := range 2*execSlotsPerCore + 1 {
			f.set(name(i), 500*time.Millisecond)
			f.watch(name(i), time.Now(), nil, v1.Container{LivenessProbe: execProbe(60, 1)})
			synctest.Wait()
		}
		waiting := name(2 * execSlotsPerCore)
		f.prober.Forget(types.UID(waiting))
		advance(10 * time.Second)
		if runs := f.ran(waiting); len(runs) > 0 {
			t.Errorf("the command ran at %v after its pod was gone", runs)
		}
	})
}

func TestStopDoesNotWaitForCommands(t *testing.T) {
	withFakeNode(t, immediate, func(f *fakeNode) {
		for i := range 10 { // some run, some wait for a slot
			f.set(name(i), time.Hour)
			f.watch(name(i), time.Now(), nil, v1.Container{LivenessProbe: execProbe(10, 300)})
		}
		advance(100 * time.Millisecond)
		began := time.Now()
		f.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("the prober stopped after %v, want at once", took)
		}
	})
}

// A pod may have many probes that use up their timeouts. Those of other pods run on time.
func TestProbesOfOnePodDoNotDelayOthers(t *testing.T) {
	const hostile, healthy, period = 100, 10, 5 * time.Second
	withFakeNode(t, evenly(healthy), func(f *fakeNode) {
		of := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hostile", UID: "hostile"}}
		seen := &pod.Observed{}
		for i := range hostile {
			c := "hostile-" + name(i)
			f.set(c, time.Hour)
			of.Spec.Containers = append(of.Spec.Containers, v1.Container{Name: c, ReadinessProbe: execProbe(1, 1)})
			seen.Containers = append(seen.Containers, pod.Container{ID: c, Name: c, State: pod.Running, StartedAt: time.Now()})
		}
		f.prober.Watch(of, seen, "", nil, false)
		advance(time.Second)
		for i := range healthy {
			f.set(name(i), 10*time.Millisecond)
			f.watch(name(i), time.Now().Add(-time.Hour), nil, v1.Container{LivenessProbe: execProbe(5, 1)})
		}
		advance(time.Minute)
		for i := range healthy {
			runs := f.ran(name(i))
			if len(runs) < 11 {
				t.Errorf("probe %d ran %d times in a minute", i, len(runs))
			}
			for n := range len(runs) - 1 {
				if apart := runs[n+1] - runs[n]; apart > period+200*time.Millisecond {
					t.Errorf("runs %d and %d of probe %d are %v apart, want %v", n, n+1, i, apart, period)
					break
				}
			}
		}
		if left := len(f.prober.slots.turns); left > 1+healthy {
			t.Errorf("%d turns are kept", left)
		}
	})
}
