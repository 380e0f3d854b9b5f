package stats

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"
)

// TestDriversWord: a volume with a driver is as full as the driver says, and a driver that
// fails or hangs costs no more than its own volumes' figures.
func TestDriversWord(t *testing.T) {
	w := newWorld(t, 2)
	p := w.addPod("one")
	var asked atomic.Int32
	w.volumes[p.UID] = []Volume{
		{Name: "told", Dir: "/nowhere/told", Claim: "c", Measure: func(context.Context) (VolumeUsage, error) {
			asked.Add(1)
			return VolumeUsage{CapacityBytes: 100, AvailableBytes: 70, UsedBytes: 30, Inodes: -1, InodesFree: -1, InodesUsed: -1}, nil
		}},
		{Name: "failed", Dir: "/nowhere/failed", Measure: func(context.Context) (VolumeUsage, error) {
			asked.Add(1)
			return VolumeUsage{}, errors.New("no")
		}},
		{Name: "hung", Dir: "/nowhere/hung", Measure: func(ctx context.Context) (VolumeUsage, error) {
			asked.Add(1)
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a driver that hangs is waited for without end")
			}
			return VolumeUsage{}, context.DeadlineExceeded
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
	for range 2 { // the second time by what is remembered
		got := volumes()
		if len(got) != 1 || got[0].Name != "told" || got[0].PVCRef.Name != "c" ||
			*got[0].CapacityBytes != 100 || *got[0].AvailableBytes != 70 || *got[0].UsedBytes != 30 || *got[0].Inodes != 0 {
			t.Errorf("volumes are %+v", got)
		}
	}
	if asked.Load() != 3 {
		t.Errorf("drivers were asked %d times", asked.Load())
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	volumes()
	if asked.Load() != 6 {
		t.Errorf("drivers were asked %d times after the period", asked.Load())
	}
	s = w.stats(func(c *Config, _ *Deps) { c.VolumePeriod = -1 })
	if got := volumes(); len(got) != 0 || asked.Load() != 6 {
		t.Errorf("measured though that is switched off: %+v", got)
	}
}

// TestDeadVolume: a volume whose file system is dead keeps one look at it for good, whoever
// asks how often, and costs them their patience once. It shows what was last known of it.
func TestDeadVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.addPod("one")
		var asked atomic.Int64
		dead := make(chan struct{})
		w.volumes[p.UID] = []Volume{
			{Name: "dead", Dir: "/nowhere/dead", Claim: "c", Measure: func(context.Context) (VolumeUsage, error) {
				n := asked.Add(1)
				if n == 2 {
					<-dead // heeds no deadline
				}
				return VolumeUsage{UsedBytes: n}, nil
			}},
			{Name: "well", Dir: "/nowhere/well", Measure: func(context.Context) (VolumeUsage, error) {
				return VolumeUsage{UsedBytes: 70}, nil
			}},
		}
		s := w.stats(func(_ *Config, d *Deps) { d.Clock = clock.RealClock{} })
		look := func(ask func() []statsapi.VolumeStats, want string, patience time.Duration) {
			t.Helper()
			began, got := time.Now(), ""
			for _, v := range ask() {
				got += fmt.Sprintf("%s=%d ", v.Name, *v.UsedBytes)
			}
			if got != want || time.Since(began) != patience {
				t.Errorf("%safter %v, want %safter %v", got, time.Since(began), want, patience)
			}
		}
		summary := func() []statsapi.VolumeStats {
			got, err := s.Summary(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got.Pods[0].VolumeStats
		}
		claims := func() []statsapi.VolumeStats { return s.Claims(t.Context()) }
		look(summary, "dead=1 well=70 ", 0)
		time.Sleep(time.Minute)
		look(summary, "dead=1 well=70 ", patience)
		for range 100 {
			look(summary, "dead=1 well=70 ", 0)
			look(claims, "dead=1 ", 0)
			time.Sleep(time.Minute)
		}
		if asked.Load() != 2 {
			t.Errorf("%d looks at a volume that does not answer", asked.Load())
		}
		w.volumes[p.UID] = nil
		look(summary, "", 0) // forgets no look that is under way
		close(dead)
		synctest.Wait()
		look(claims, "", 0)
		if len(s.looks.known) != 0 {
			t.Errorf("%d volumes are remembered that are gone", len(s.looks.known))
		}
	})
}
