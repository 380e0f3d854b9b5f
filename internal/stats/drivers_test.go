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

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
)

// A volume with a driver has the usage that the driver reports, and a driver that fails or
// hangs affects only its own volumes.
func TestVolumeDriver(t *testing.T) {
	w := newFakeNode(t, 2)
	p := w.addPod("one")
	var calls atomic.Int32
	w.volumes[p.UID] = []pod.MeasurableVolume{
		{Name: "reported", Dir: "/nowhere/reported", Claim: "c", Measure: func(context.Context) (pod.VolumeUsage, error) {
			calls.Add(1)
			return pod.VolumeUsage{CapacityBytes: 100, AvailableBytes: 70, UsedBytes: 30, Inodes: -1, InodesFree: -1, InodesUsed: -1}, nil
		}},
		{Name: "failed", Dir: "/nowhere/failed", Measure: func(context.Context) (pod.VolumeUsage, error) {
			calls.Add(1)
			return pod.VolumeUsage{}, errors.New("no")
		}},
		{Name: "hung", Dir: "/nowhere/hung", Measure: func(ctx context.Context) (pod.VolumeUsage, error) {
			calls.Add(1)
			if _, hasLimit := ctx.Deadline(); !hasLimit {
				t.Error("the driver call has no deadline")
			}
			return pod.VolumeUsage{}, context.DeadlineExceeded
		}},
	}
	s := w.stats(nil)
	volumes := func() []statsapi.VolumeStats {
		t.Helper()
		got, err := s.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got.Pods[0].VolumeStats
	}
	for range 2 { // the second time from the cache
		got := volumes()
		if len(got) != 1 || got[0].Name != "reported" || got[0].PVCRef.Name != "c" ||
			*got[0].CapacityBytes != 100 || *got[0].AvailableBytes != 70 || *got[0].UsedBytes != 30 || *got[0].Inodes != 0 {
			t.Errorf("volumes are %+v", got)
		}
	}
	if calls.Load() != 3 {
		t.Errorf("%d driver calls, want 3", calls.Load())
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	volumes()
	if calls.Load() != 6 {
		t.Errorf("%d driver calls after the period, want 6", calls.Load())
	}
	s = w.stats(func(c *Config, _ *Deps) { c.VolumePeriod = -1 })
	if got := volumes(); len(got) != 0 || calls.Load() != 6 {
		t.Errorf("measured although that is turned off: %+v", got)
	}
}

// A volume whose file system is dead blocks one measurement for good, delays its callers by
// maxWait once, and shows its last result.
func TestHungVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, 2)
		p := w.addPod("one")
		var calls atomic.Int64
		dead := make(chan struct{})
		w.volumes[p.UID] = []pod.MeasurableVolume{
			{Name: "dead", Dir: "/nowhere/dead", Claim: "c", Measure: func(context.Context) (pod.VolumeUsage, error) {
				n := calls.Add(1)
				if n == 2 {
					<-dead // ignores the deadline
				}
				return pod.VolumeUsage{UsedBytes: n}, nil
			}},
			{Name: "well", Dir: "/nowhere/well", Measure: func(context.Context) (pod.VolumeUsage, error) {
				return pod.VolumeUsage{UsedBytes: 70}, nil
			}},
		}
		s := w.stats(func(_ *Config, d *Deps) { d.Clock = clock.RealClock{} })
		check := func(read func() []statsapi.VolumeStats, want string, delay time.Duration) {
			t.Helper()
			began, got := time.Now(), ""
			for _, v := range read() {
				got += fmt.Sprintf("%s=%d ", v.Name, *v.UsedBytes)
			}
			if got != want || time.Since(began) != delay {
				t.Errorf("%safter %v, want %safter %v", got, time.Since(began), want, delay)
			}
		}
		summary := func() []statsapi.VolumeStats {
			got, err := s.Summary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got.Pods[0].VolumeStats
		}
		claims := func() []statsapi.VolumeStats { return s.ClaimStats(t.Context()) }
		check(summary, "dead=1 well=70 ", 0)
		time.Sleep(time.Minute)
		check(summary, "dead=1 well=70 ", maxWait)
		for range 100 {
			check(summary, "dead=1 well=70 ", 0)
			check(claims, "dead=1 ", 0)
			time.Sleep(time.Minute)
		}
		if calls.Load() != 2 {
			t.Errorf("%d measurements of a hung volume, want 2", calls.Load())
		}
		w.volumes[p.UID] = nil
		check(summary, "", 0) // keeps a measurement in progress
		close(dead)
		synctest.Wait()
		check(claims, "", 0)
		if len(s.measurements.byDir) != 0 {
			t.Errorf("%d volumes are cached that are gone", len(s.measurements.byDir))
		}
	})
}
