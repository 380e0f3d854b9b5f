package stats

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A signal that cannot be read does not affect the others, and is logged once.
func TestPartialSignals(t *testing.T) {
	remove := func(w *fakeNode, path string) {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	}
	cases := []struct {
		name   string
		damage func(*fakeNode, *Stats)
		want   string
		logged bool
	}{
		{"all readable", func(*fakeNode, *Stats) {}, "memory pods node images containers pids own", false},
		{"root directory missing", func(w *fakeNode, _ *Stats) { remove(w, w.rootDir) }, "memory pods images containers pids own", true},
		{"memory of node unreadable", func(w *fakeNode, _ *Stats) { remove(w, w.hierarchy.Dir("", "/")+"/memory.stat") }, "pods node images containers pids own", true},
		{"memory of pods unreadable", func(w *fakeNode, _ *Stats) {
			file := w.hierarchy.Dir("", "/kubepods") + "/memory.stat"
			remove(w, file)
			w.write(file, "x", "") // a directory: not gone, but unreadable
		}, "memory node images containers pids own", true},
		{"image file system missing", func(_ *fakeNode, s *Stats) { s.runtimeFs.cached.images = "/no/such/dir" }, "memory pods node containers pids own", true},
		{"container file system missing", func(_ *fakeNode, s *Stats) { s.runtimeFs.cached.containers = "/no/such/dir" }, "memory pods node images pids own", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newFakeNode(t, 2)
			w.set("/kubepods", "", "memory.max", "4000000")
			var log bytes.Buffer
			s := w.stats(func(cfg *Config, d *Deps) {
				cfg.PodsCgroup, d.Log = "/kubepods", slog.New(slog.NewTextHandler(&log, nil))
			})
			fileSystems := runtimeFileSystems{images: t.TempDir(), containers: t.TempDir(), ownImages: true, ownContainers: true}
			s.runtimeFs.cached = &fileSystems
			c.damage(w, s)
			for range 3 {
				cached := fileSystems
				s.runtimeFs.cached = &cached // an error drops the cache
				got, err := s.Signals(t.Context())
				if parts := partsOf(got); err != nil || parts != c.want {
					t.Errorf("%s, %v; want %s", parts, err, c.want)
				}
			}
			if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) != c.logged {
				t.Errorf("%d log lines:\n%s", lines, &log)
			}
		})
	}
}

func partsOf(s Signals) string {
	var parts []string
	for _, part := range []struct {
		name  string
		known bool
	}{
		{"memory", s.Memory != nil},
		{"pods", s.PodMemory != nil},
		{"node", s.Node != nil},
		{"images", s.Images != nil},
		{"containers", s.Containers != nil},
		{"pids", s.PIDs != nil},
		{"own", s.OwnImageFs && s.OwnContainerFs},
	} {
		if part.known {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, " ")
}

// slowRuntime takes a minute to report its file systems.
type slowRuntime struct {
	*fakeRuntime
	images string
	calls  int
}

func (r *slowRuntime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	r.calls++
	time.Sleep(time.Minute)
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.images}},
	}}, nil
}

// Signals do not wait for a runtime that does not answer; it is called once, and its late
// answer is used.
func TestSignalsWithSlowRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeNode(t, 2)
		slow := &slowRuntime{fakeRuntime: w.runtime, images: t.TempDir()}
		s := w.stats(func(_ *Config, d *Deps) { d.Runtime = slow })
		check := func(want string, took time.Duration) {
			t.Helper()
			began := time.Now()
			got, err := s.Signals(t.Context())
			if parts := partsOf(got); err != nil || parts != want || time.Since(began) != took {
				t.Errorf("%s, %v after %v; want %s after %v", parts, err, time.Since(began), want, took)
			}
		}
		for range 10 {
			check("memory node pids", runtimeFsTimeout)
		}
		time.Sleep(time.Minute)
		check("memory node images containers pids", 0)
		if slow.calls != 1 {
			t.Errorf("%d calls of the runtime, want 1", slow.calls)
		}
	})
}
