package stats

import (
	"context"
	"errors"
	"fmt"
	"swiftlet/internal/pod"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
)

// slowVolume makes a volume that takes a minute to measure, and counts the measurements.
func slowVolume(dir string, begun *atomic.Int32) pod.MeasurableVolume {
	return pod.MeasurableVolume{Name: "long", Dir: dir, Local: true, QuotaUsage: func() (uint64, uint64, bool) {
		begun.Add(1)
		time.Sleep(time.Minute)
		return 0, 0, false // so that it is walked
	}}
}

// A volume that takes longer to walk than callers wait is walked once for all of them, even
// when they leave, and then shows the result.
func TestSlowWalkIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, 2)
		p := w.addPod("one")
		dir, begun := t.TempDir(), new(atomic.Int32)
		w.write(dir, "file", "x")
		w.volumes[p.UID] = []pod.MeasurableVolume{slowVolume(dir, begun)}
		s := w.stats(func(_ *Config, d *Deps) { d.Clock = clock.RealClock{} })
		summary := func(ctx context.Context) ([]statsapi.PodStats, error) {
			got, err := s.Summary(ctx)
			if err != nil {
				return nil, err
			}
			return got.Pods, nil
		}
		storage := func(ctx context.Context) ([]statsapi.PodStats, error) {
			return s.Storage(ctx, []types.UID{p.UID}, 10*time.Second)
		}
		check := func(read func(context.Context) ([]statsapi.PodStats, error), want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			all, err := read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got := "nothing"
			for _, v := range all[0].VolumeStats {
				got = fmt.Sprintf("%d files", *v.InodesUsed)
			}
			if got += fmt.Sprint(" after ", time.Since(began)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := summary(short); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		check(storage, "nothing after 2s")
		check(summary, "nothing after 0s")
		if begun.Load() != 1 {
			t.Errorf("%d concurrent walks of one volume", begun.Load())
		}
		time.Sleep(time.Minute)
		check(storage, "2 files after 0s")
		w.write(dir, "more", "x")
		time.Sleep(time.Minute)
		check(summary, "2 files after 3s") // the last result, while the next walk is in progress
		time.Sleep(time.Minute)
		check(summary, "3 files after 0s")
		if begun.Load() != 2 {
			t.Errorf("%d walks, want 2", begun.Load())
		}
	})
}

// Volumes that take long delay the walk of others by walkerWait only.
func TestWalkStartsWithoutFreeWalker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, 2)
		p := w.addPod("one")
		w.volumes[p.UID] = []pod.MeasurableVolume{{Name: "short", Dir: t.TempDir()}}
		s := w.stats(func(_ *Config, d *Deps) { d.Clock = clock.RealClock{} })
		for range maxWalkers {
			s.walkers <- struct{}{}
		}
		began := time.Now()
		got, err := s.Summary(t.Context())
		if err != nil || len(got.Pods[0].VolumeStats) != 1 || time.Since(began) != walkerWait {
			t.Errorf("%+v, %v after %v", got, err, time.Since(began))
		}
	})
}

// A panic while a volume is measured is an error of that volume: it is measured again, and others are not affected.
func TestPanicOfMeasurementHarmsItsVolume(t *testing.T) {
	w := newFakeNode(t, 2)
	p := w.addPod("one")
	panics := 0
	healthy := t.TempDir()
	w.write(healthy, "file", "x")
	w.volumes[p.UID] = []pod.MeasurableVolume{
		{Name: "broken", Dir: t.TempDir(), Driver: "d", Measure: func(context.Context) (pod.VolumeUsage, error) {
			panics++
			panic("broken driver")
		}},
		{Name: "healthy", Dir: healthy, Local: true},
	}
	s := w.stats(func(_ *Config, d *Deps) { d.Clock = clock.RealClock{} })
	for range 2 {
		all, err := s.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := all.Pods[0].VolumeStats; len(got) != 1 || got[0].Name != "healthy" || *got[0].InodesUsed != 2 {
			t.Errorf("volumes: %+v", got)
		}
	}
	if panics != 2 {
		t.Errorf("measured %d times, want 2", panics)
	}
}
