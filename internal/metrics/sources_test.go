package metrics

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
	"swiftlet/internal/volume"
	"swiftlet/internal/worker"
)

// A plugin chooses the name of its socket. For a label that is not UTF-8, the Prometheus library drops all metrics
// of its collector that follow.
func TestSocketNameThatIsNotUTF8(t *testing.T) {
	m, err := New(testclock.NewFakePassiveClock(epoch), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	noPods := func() []*v1.Pod { return nil }
	none := func() int { return 0 }
	if err := m.RegisterSources(Sources{
		Desired: noPods, Active: noPods, MirrorPods: none, Working: func() []worker.PodState { return nil },
		Observed: func() []pod.Observed { return nil }, LastRelist: func() time.Time { return time.Time{} },
		Volumes: func() volume.Counts { return volume.Counts{} }, PullRecords: func() (int, int) { return 0, 0 },
		LogBytes:    func(pod.Ref, string) (int64, error) { return 0, nil },
		Plugins:     func() map[string]bool { return map[string]bool{"/plugins_registry/\xff.sock": true} },
		ClaimsInUse: func() map[string]int { return nil }, ClaimStats: func() []statsapi.VolumeStats { return nil },
		PendingResizes: func() map[string][]*v1.Pod { return nil }, ResizesInProgress: none,
	}); err != nil {
		t.Fatal(err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range families {
		if f.GetName() != "plugin_manager_total_plugins" {
			continue
		}
		for _, sample := range f.Metric {
			paths = append(paths, sample.Label[0].GetValue())
		}
	}
	if want := []string{"/plugins_registry/\uFFFD.sock", "/plugins_registry/\uFFFD.sock"}; !slices.Equal(paths, want) {
		t.Errorf("sockets %q, want %q", paths, want)
	}
}
