package stats

import (
	"fmt"
	"strings"
	"swiftlet/internal/pod"
	"testing"
	"time"
)

// A volume with a project quota is not walked, and shows changes at once; one whose quota is
// gone is walked.
func TestVolumeWithQuota(t *testing.T) {
	w := newFakeNode(t, 2)
	o := w.addPod("a")
	dir := t.TempDir()
	w.write(dir, "data", "x")
	bytes, hasQuota := uint64(1<<30), true
	w.volumes[o.UID] = []pod.MeasurableVolume{{Name: "v", Dir: dir, Local: true, QuotaUsage: func() (uint64, uint64, bool) { return bytes, 77, hasQuota }}}
	var measured []string
	s := w.stats(func(c *Config, d *Deps) {
		c.VolumePeriod = -1 // no walks
		d.VolumeMeasured = func(by string, _ time.Duration) { measured = append(measured, by) }
	})
	summary := func() string {
		t.Helper()
		got, err := s.Summary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := got.Pods[0]
		if len(p.VolumeStats) == 0 {
			return "nothing"
		}
		v := p.VolumeStats[0]
		return fmt.Sprintf("%d bytes in %d files, all %d bytes in %d", *v.UsedBytes, *v.InodesUsed, *p.EphemeralStorage.UsedBytes, *p.EphemeralStorage.InodesUsed)
	}
	if got, want := summary(), "1073741824 bytes in 77 files, all 1073741824 bytes in 77"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	bytes = 5
	if got, want := summary(), "5 bytes in 77 files, all 5 bytes in 77"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if fmt.Sprint(measured) != "[fsquota fsquota]" {
		t.Errorf("measured by %v", measured)
	}
	hasQuota = false
	if got := summary(); got != "nothing" {
		t.Errorf("without quota and without walks: %s", got)
	}
	s.cfg.VolumePeriod = time.Minute
	if got := summary(); !strings.Contains(got, " bytes in 2 files") {
		t.Errorf("walked: %s", got)
	}
	if fmt.Sprint(measured) != "[fsquota fsquota du]" {
		t.Errorf("measured by %v", measured)
	}
}
