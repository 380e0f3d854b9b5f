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
		t.Errorf("told by a driver that cannot: %v", err)
	}
	d.mu.Lock()
	d.able = append(d.able, canTellHealth)
	d.ailments = []*csi.VolumeHealth_VolumeHealthEntry{{Status: csi.VolumeHealthErrorType_INACCESSIBLE, Reason: "Gone", Message: "no such disk"}}
	d.mu.Unlock()
	for name, c := range map[string]struct {
		r    plugin.Request
		at   plugin.Result
		path string
	}{
		"up":        {f.request(), plugin.Result{HostPath: "/target"}, "/target"},
		"not up":    {f.request(), plugin.Result{}, ""},
		"raw":       {f.request(asBlock), plugin.Result{HostPath: "/dev/x"}, f.rawPublishPath(f.request(asBlock))},
		"raw, down": {f.request(asBlock), plugin.Result{}, ""},
	} {
		got, err := f.Health(t.Context(), c.r, c.at)
		if want := []v1.VolumeHealthCondition{{Status: v1.VolumeHealthInaccessible, Reason: "Gone", Message: "no such disk"}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
		asked := d.take()[0].(*csi.NodeGetVolumeHealthRequest)
		if asked.VolumeId != "handle" || asked.VolumePublishPath != c.path || asked.StagingTargetPath == "" {
			t.Errorf("%s: asked %v", name, asked)
		}
	}
	if _, err := f.Health(t.Context(), f.inline(), plugin.Result{}); !errors.Is(err, plugin.ErrHealthUnknown) {
		t.Errorf("asked about a volume of the pod's own: %v", err)
	}
}

// TestConditionsAreAsTheAPITakesThem: one that is not would cost the pod's whole status.
func TestConditionsAreAsTheAPITakesThem(t *testing.T) {
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
