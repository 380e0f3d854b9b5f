package stats

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
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
