package csi

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
)

func TestHealth(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	if _, err := f.Health(t.Context(), f.request(), plugin.Result{}); !errors.Is(err, plugin.ErrHealthUnknown) || len(d.take()) > 0 {
		t.Errorf("reported by a driver without the capability: %v", err)
	}
	d.mu.Lock()
	d.caps = append(d.caps, canReportHealth)
	d.healthStatuses = []*csi.VolumeHealth_VolumeHealthEntry{{Status: csi.VolumeHealthErrorType_INACCESSIBLE, Reason: "Gone", Message: "no such disk"}}
	d.mu.Unlock()
	for name, c := range map[string]struct {
		r    plugin.Request
		at   plugin.Result
		path string
	}{
		"mounted":        {f.request(), plugin.Result{HostPath: "/target"}, "/target"},
		"not mounted":    {f.request(), plugin.Result{}, ""},
		"raw mapped":     {f.request(asBlock), plugin.Result{HostPath: "/dev/x"}, f.rawPublishPath(f.request(asBlock))},
		"raw not mapped": {f.request(asBlock), plugin.Result{}, ""},
	} {
		got, err := f.Health(t.Context(), c.r, c.at)
		if want := []v1.VolumeHealthCondition{{Status: v1.VolumeHealthInaccessible, Reason: "Gone", Message: "no such disk"}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
		requests := d.take()[0].(*csi.NodeGetVolumeHealthRequest)
		if requests.VolumeId != "handle" || requests.VolumePublishPath != c.path || requests.StagingTargetPath == "" {
			t.Errorf("%s: requests %v", name, requests)
		}
	}
	if _, err := f.Health(t.Context(), f.inline(), plugin.Result{}); !errors.Is(err, plugin.ErrHealthUnknown) {
		t.Errorf("called for an inline volume: %v", err)
	}
}

// TestConditionsAreValid: the API server rejects the whole pod status for an invalid condition.
func TestConditionsAreValid(t *testing.T) {
	entry := func(s csi.VolumeHealthErrorType, reason, message string) *csi.VolumeHealth_VolumeHealthEntry {
		return &csi.VolumeHealth_VolumeHealthEntry{Status: s, Reason: reason, Message: message}
	}
	got := conditions([]*csi.VolumeHealth_VolumeHealthEntry{
		entry(csi.VolumeHealthErrorType_INACCESSIBLE, "B", ""), entry(csi.VolumeHealthErrorType_INACCESSIBLE, "A", ""),
		entry(csi.VolumeHealthErrorType_INACCESSIBLE, "B", "again"), entry(99, "New", ""), entry(0, "Unknown", ""),
		entry(csi.VolumeHealthErrorType_DATA_LOSS, "", strings.Repeat("m", 2000)), entry(csi.VolumeHealthErrorType_DEGRADED, strings.Repeat("r", 300), ""),
	})
	want := []v1.VolumeHealthCondition{
		{Status: v1.VolumeHealthDataLoss, Reason: "DataLoss", Message: strings.Repeat("m", 1024)},
		{Status: v1.VolumeHealthDegraded, Reason: strings.Repeat("r", 256)},
		{Status: v1.VolumeHealthInaccessible, Reason: "A"}, {Status: v1.VolumeHealthInaccessible, Reason: "B"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var many []*csi.VolumeHealth_VolumeHealthEntry
	for i := range 40 {
		many = append(many, entry(csi.VolumeHealthErrorType_DEGRADED, strings.Repeat("x", i+1), ""))
	}
	if got := conditions(many); len(got) != 16 {
		t.Errorf("%d conditions, want 16", len(got))
	}
}
