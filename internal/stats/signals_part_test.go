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

// TestSignalsInPart: what cannot be read takes nothing from the rest, and is told once.
func TestSignalsInPart(t *testing.T) {
	lose := func(w *world, path string) {
		if err := os.Remove(path); err != nil {
			w.t.Fatal(err)
		}
	}
	cases := []struct {
		name string
		harm func(*world, *Stats)
		want string
		told bool
	}{
		{"all is well", func(*world, *Stats) {}, "memory pods node images containers pids own", false},
		{"the node's folder", func(w *world, _ *Stats) { lose(w, w.rootDir) }, "memory pods images containers pids own", true},
		{"memory", func(w *world, _ *Stats) { lose(w, w.hierarchy.Dir("", "/")+"/memory.stat") }, "pods node images containers pids own", true},
		{"memory of pods", func(w *world, _ *Stats) {
			file := w.hierarchy.Dir("", "/kubepods") + "/memory.stat"
			lose(w, file)
			w.write(file, "x", "") // a folder: not gone, but not to be read
		}, "memory node images containers pids own", true},
		{"images", func(_ *world, s *Stats) { s.places.known.images = "/no/such/place" }, "memory pods node containers pids own", true},
		{"containers", func(_ *world, s *Stats) { s.places.known.containers = "/no/such/place" }, "memory pods node images pids own", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.set("/kubepods", "", "memory.max", "4000000")
			var log bytes.Buffer
			s := w.stats(func(cfg *Config, d *Deps) {
				cfg.PodsGroup, d.Log = "/kubepods", slog.New(slog.NewTextHandler(&log, nil))
			})
			places := runtimePlaces{images: t.TempDir(), containers: t.TempDir(), ownImages: true, ownContainers: true}
			s.places.known = &places
			c.harm(w, s)
			for range 3 {
				known := places
				s.places.known = &known // it is forgotten where it fails
				got, err := s.Signals(t.Context())
				if parts := partsOf(got); err != nil || parts != c.want {
					t.Errorf("%s, %v; want %s", parts, err, c.want)
				}
			}
			if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) != c.told {
				t.Errorf("told %d times:\n%s", lines, &log)
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

// slowRuntime takes its time to tell where its files are.
type slowRuntime struct {
	*fakeRuntime
	images string
	asked  int
}

func (r *slowRuntime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	r.asked++
	time.Sleep(time.Minute)
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{
		{FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.images}},
	}}, nil
}

// TestSignalsOfSlowRuntime: memory does not wait for a runtime that does not answer, which is
// asked once, and listened to when it answers.
func TestSignalsOfSlowRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		slow := &slowRuntime{fakeRuntime: w.runtime, images: t.TempDir()}
		s := w.stats(func(_ *Config, d *Deps) { d.Runtime = slow })
		look := func(want string, took time.Duration) {
			t.Helper()
			began := time.Now()
			got, err := s.Signals(t.Context())
			if parts := partsOf(got); err != nil || parts != want || time.Since(began) != took {
				t.Errorf("%s, %v after %v; want %s after %v", parts, err, time.Since(began), want, took)
			}
		}
		for range 10 {
			look("memory node pids", runtimePatience)
		}
		time.Sleep(time.Minute)
		look("memory node images containers pids", 0)
		if slow.asked != 1 {
			t.Errorf("the runtime was asked %d times", slow.asked)
		}
	})
}
