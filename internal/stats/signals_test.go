package stats

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

func TestSignals(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		if w.hierarchy.Version == 1 {
			w.set("/kubepods", "memory", "memory.limit_in_bytes", "4000000")
		} else {
			w.set("/kubepods", "", "memory.max", "4000000")
		}
		s := w.stats(func(c *Config, _ *Deps) {
			c.PodsCgroup, c.ExcludeHugePages, c.Machine.HugePages = "/kubepods", true, 1<<20
		})
		got, err := s.Signals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now := w.clock.Now()
		if want := (Memory{Level{3_300_000, 4_000_000, now}, 300_000}); got.PodMemory == nil || *got.PodMemory != want {
			t.Errorf("memory of pods: %+v, want %+v", got.PodMemory, want)
		}
		if m := got.Memory; w.hierarchy.Version == 1 && (m.Available != 1<<40-700_000-1<<20 || m.Capacity != 1<<40-1<<20) {
			t.Errorf("memory: %+v", m)
		}
		if d := got.Node; d == nil || d.Space.Capacity == 0 || d.Space.Available > d.Space.Capacity || d.Inodes.At != now {
			t.Errorf("the node's disk: %+v", d)
		}
		if got.PIDs == nil || got.PIDs.Capacity != 1000 || got.PIDs.Available >= 1000 {
			t.Errorf("process ids: %+v", got.PIDs)
		}
		if got.Images != nil || got.Containers != nil {
			t.Error("got file systems of the runtime that do not exist")
		}
	})
}

// A cgroup without a limit, or a missing one, gives no signal.
func TestSignalsWithoutLimit(t *testing.T) {
	eachCgroupVersion(t, func(t *testing.T, w *fakeNode) {
		for _, group := range []string{"/kubepods", "/none", ""} {
			got, err := w.stats(func(c *Config, _ *Deps) { c.PodsCgroup = group }).Signals(t.Context())
			if err != nil || got.PodMemory != nil {
				t.Errorf("group %q: %+v, %v", group, got.PodMemory, err)
			}
		}
	})
}

func TestRuntimeFsFrom(t *testing.T) {
	at := func(dir string) *runtimeapi.FilesystemUsage {
		return &runtimeapi.FilesystemUsage{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: dir}}
	}
	here, proc, sys := t.TempDir(), "/proc", "/sys" // three file systems
	cases := []struct {
		name               string
		images, containers string
		ownImages, own     bool
	}{
		{"one disk", here, "", false, false},
		{"one disk reported for both", here, here, false, false},
		{"a disk for images, containers not reported", proc, "", true, false},
		{"a disk for images and containers", proc, proc, true, false},
		{"a disk for images alone", proc, here, true, true},
		{"a disk for containers alone", here, proc, true, true},
		{"a disk for each", proc, sys, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			info := &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{at(c.images)}}
			if c.containers != "" {
				info.ContainerFilesystems = []*runtimeapi.FilesystemUsage{at(c.containers)}
			}
			got, err := runtimeFsFrom(info, here)
			if err != nil || got.ownImages != c.ownImages || got.ownContainers != c.own {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if _, err := runtimeFsFrom(&runtimeapi.ImageFsInfoResponse{}, here); err == nil {
		t.Error("a runtime without an image file system is accepted")
	}
}

// Storage reports the requested pods only, with results that are not older than requested.
func TestStorageOfPods(t *testing.T) {
	w := newFakeNode(t, 2)
	a, b := w.addPod("a"), w.addPod("b")
	w.runtime.layers["container-a"] = 1 << 20
	volume := t.TempDir()
	w.volumes[a.UID] = []pod.MeasurableVolume{{Name: "v", Dir: volume, Local: true}}
	s := w.stats(nil)
	files := func() uint64 {
		t.Helper()
		got, err := s.Storage(t.Context(), []types.UID{a.UID, "other"}, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0].PodRef.UID != string(a.UID) || *got[0].Containers[0].Rootfs.UsedBytes != 1<<20 ||
			*got[0].EphemeralStorage.UsedBytes < 1<<20 {
			t.Fatalf("%+v, without %s", got, b.UID)
		}
		return *got[0].VolumeStats[0].InodesUsed
	}
	if n := files(); n != 1 {
		t.Errorf("%d files, want the directory", n)
	}
	if _, err := s.Summary(t.Context()); err != nil { // its own results are valid for a minute
		t.Fatal(err)
	}
	w.write(volume, "new", "x")
	if n := files(); n != 1 {
		t.Errorf("the volume was walked again at once: %d files", n)
	}
	w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
	if n := files(); n != 2 {
		t.Errorf("the volume was not walked again: %d files", n)
	}
}

// hangingRuntime hangs with one sandbox, and fails with another.
type hangingRuntime struct {
	*fakeRuntime
	hangs, fails string
}

func (r hangingRuntime) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	switch filter.PodSandboxId {
	case r.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case r.fails:
		return nil, errors.New("no such task")
	}
	return r.fakeRuntime.ListContainerStats(ctx, filter)
}

// Limits on storage are enforced by Storage: a pod that the runtime does not answer for must not suspend them for
// all others.
func TestStorageOfOtherPodsWhileRuntimeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, 2)
		hung, failed, healthy := w.addPod("hung"), w.addPod("failed"), w.addPod("healthy")
		w.runtime.layers["container-healthy"] = 1 << 20
		s := w.stats(func(_ *Config, d *Deps) {
			d.Clock = clock.RealClock{}
			d.Runtime = hangingRuntime{w.runtime, hung.Sandbox().ID, failed.Sandbox().ID}
		})
		began := time.Now()
		got, err := s.Storage(t.Context(), []types.UID{hung.UID, failed.UID, healthy.UID}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*layersTimeout {
			t.Errorf("took %v", took)
		}
		found := map[string]bool{}
		for _, p := range got {
			fs := p.Containers[0].Rootfs
			found[p.PodRef.Name] = fs != nil && fs.UsedBytes != nil && *fs.UsedBytes == 1<<20
		}
		if !found["healthy"] || found["hung"] || found["failed"] {
			t.Errorf("pods with a writable layer: %v", found)
		}
		if _, err := s.Storage(t.Context(), []types.UID{failed.UID}, time.Minute); err == nil {
			t.Error("no error although there is no answer for any pod")
		}
	})
}

// BenchmarkSignals measures Signals, which eviction calls every few seconds.
func BenchmarkSignals(b *testing.B) {
	s := newFakeNode(b, 1).stats(func(c *Config, _ *Deps) { c.PodsCgroup = "/kubepods" })
	for b.Loop() {
		if _, err := s.Signals(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
