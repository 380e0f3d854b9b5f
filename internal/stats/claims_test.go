package stats

import (
	"context"
	"errors"
	"fmt"
	"swiftlet/internal/pod"
	"testing"
)

// Each claim is reported once, by the first volume that can be measured; volumes without a
// claim are not measured.
func TestClaims(t *testing.T) {
	w := newFakeNode(t, 2)
	reports := func(used int64, err error) func(context.Context) (pod.VolumeUsage, error) {
		return func(context.Context) (pod.VolumeUsage, error) {
			return pod.VolumeUsage{CapacityBytes: 100, AvailableBytes: 100 - used, UsedBytes: used}, err
		}
	}
	never := func(context.Context) (pod.VolumeUsage, error) {
		t.Error("a volume without a claim was measured")
		return pod.VolumeUsage{}, nil
	}
	first, second := w.addPod("first"), w.addPod("second")
	w.volumes[first.UID] = []pod.MeasurableVolume{
		{Name: "scratch", Dir: "/nowhere/scratch", Measure: never},
		{Name: "data", Dir: "/nowhere/data", Claim: "failing", Measure: reports(1, errors.New("no"))},
		{Name: "both", Dir: "/nowhere/both", Claim: "shared", Measure: reports(2, nil)},
	}
	w.volumes[second.UID] = []pod.MeasurableVolume{
		{Name: "data", Dir: "/nowhere/data2", Claim: "failing", Measure: reports(3, nil)},
		{Name: "both", Dir: "/nowhere/both2", Claim: "shared", Measure: reports(4, nil)},
		{Name: "walked", Dir: t.TempDir(), Claim: "local"},
	}
	s := w.stats(nil)
	got := map[string]string{}
	for _, v := range s.ClaimStats(t.Context()) {
		got[v.PVCRef.Namespace+"/"+v.PVCRef.Name] += fmt.Sprint(*v.UsedBytes, " ")
	}
	if _, known := got[first.Namespace+"/local"]; !known || len(got) != 3 {
		t.Errorf("claims: %v, want local and two others", got)
	}
	if got[first.Namespace+"/failing"] != "3 " || got[first.Namespace+"/shared"] != "2 " {
		t.Errorf("claims: %v", got)
	}
	delete(w.volumes, second.UID)
	s.ClaimStats(t.Context())
	if len(s.measurements.byDir) != 2 {
		t.Errorf("%d volumes are cached, want the two that exist", len(s.measurements.byDir))
	}
}
