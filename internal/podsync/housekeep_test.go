package podsync

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// orphans are the directories of pods that are in no source.
type orphans struct {
	dirs  []types.UID
	stuck map[types.UID]error
}

func (r *orphans) PodDirs() ([]types.UID, error) { return slices.Clone(r.dirs), nil }
func (r *orphans) UnstageOrphans() error         { return nil }

func (r *orphans) Unmount(ctx context.Context, uid types.UID) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("no deadline")
	}
	return r.stuck[uid]
}

func (r *orphans) RemovePodDir(uid types.UID) error {
	r.dirs = slices.DeleteFunc(r.dirs, func(u types.UID) bool { return u == uid })
	return nil
}

func (r *orphans) Pods() ([]types.UID, error)                 { return nil, nil }
func (r *orphans) RemovePod(context.Context, types.UID) error { return nil }
func (r *orphans) PodLogs() ([]pod.Ref, error)                { return nil, nil }
func (r *orphans) RemoveLogs(pod.Ref) error                   { return nil }

// TestPersistentFailureIsLoggedOnce: a directory that cannot be removed does not block others, and
// is logged again only when the error changes.
func TestPersistentFailureIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	r := &orphans{dirs: []types.UID{"stuck", "free"}, stuck: map[types.UID]error{"stuck": errors.New("device is busy")}}
	no := func(types.UID) bool { return false }
	k, err := NewHousekeeper(HousekeeperDeps{Known: no, InRuntime: no, Directories: r, Cgroups: r, Logs: r, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		k.round(t.Context())
	}
	if !slices.Equal(r.dirs, []types.UID{"stuck"}) {
		t.Errorf("left: %v", r.dirs)
	}
	if n := strings.Count(log.String(), "device is busy"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "removing orphaned pod directory"); n != 2 {
		t.Errorf("%d directories begun, want 2:\n%s", n, log.String())
	}
	r.stuck["stuck"] = errors.New("no driver")
	k.round(t.Context())
	if !strings.Contains(log.String(), "no driver") {
		t.Error("a new error was not logged")
	}
	r.stuck = nil
	k.round(t.Context())
	if len(r.dirs) != 0 {
		t.Errorf("left: %v", r.dirs)
	}
}

// slowOrphans are orphans whose removal takes a while.
type slowOrphans struct {
	orphans
	release chan struct{}
}

func (r *slowOrphans) Unmount(_ context.Context, uid types.UID) error {
	<-r.release
	if uid != "back" {
		return errors.New("device is busy")
	}
	return nil
}

// A static pod that is written again has the same UID. It may be back while its removal waits for others.
func TestPodThatComesBackIsNoOrphan(t *testing.T) {
	for name, others := range map[string]int{"before its removal": parallelOrphans, "during the unmount": 0} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testReturn(t, others) }) })
	}
}

func testReturn(t *testing.T, others int) {
	r := &slowOrphans{release: make(chan struct{})}
	for n := range others {
		r.dirs = append(r.dirs, types.UID(rune('0'+n)))
	}
	r.dirs = append(r.dirs, "back")
	var known atomic.Bool
	k, err := NewHousekeeper(HousekeeperDeps{
		Known:     func(uid types.UID) bool { return uid == "back" && known.Load() },
		InRuntime: func(types.UID) bool { return false }, Directories: r, Cgroups: r, Logs: r, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	go k.round(t.Context())
	synctest.Wait()
	known.Store(true)
	close(r.release)
	synctest.Wait()
	if !slices.Contains(r.dirs, "back") {
		t.Error("the directory of a running pod was removed")
	}
}

// TestHousekeeperRetries: Retry repeats a run that failed in part, and does nothing after a
// complete one.
func TestHousekeeperRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &orphans{dirs: []types.UID{"stuck"}, stuck: map[types.UID]error{"stuck": errors.New("no driver")}}
		no := func(types.UID) bool { return false }
		k, err := NewHousekeeper(HousekeeperDeps{Known: no, InRuntime: no, Directories: r, Cgroups: r, Logs: r, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = k.Run(ctx) }()
		k.Notify(ctx)
		synctest.Wait()
		r.stuck = nil
		k.Retry()
		synctest.Wait()
		if len(r.dirs) != 0 {
			t.Errorf("left: %v", r.dirs)
		}
		r.dirs = []types.UID{"new"} // of a pod that may be in a source
		k.Retry()
		synctest.Wait()
		if len(r.dirs) != 1 {
			t.Error("Retry started a run after a complete one")
		}
	})
}

// A mirror that is left while the API server is unavailable is deleted when it is back.
func TestHousekeeperDeletesMirrorsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &orphans{}, &mirrors{err: errors.New("connection refused")}
		no := func(types.UID) bool { return false }
		k, err := NewHousekeeper(HousekeeperDeps{Known: no, InRuntime: no, Directories: r, Cgroups: r, Logs: r, Mirrors: m, OrphanMirrors: m.list, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = k.Run(ctx) }()
		m.left = []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "left"}}}
		k.Retry() // too early
		synctest.Wait()
		m.err = nil
		k.Retry()
		synctest.Wait()
		if len(m.left) != 0 || m.tries != 2 {
			t.Errorf("%d are left after %d tries", len(m.left), m.tries)
		}
	})
}

// mirrors are orphaned mirrors.
type mirrors struct {
	Mirrors
	left  []*v1.Pod
	err   error
	tries int
}

func (m *mirrors) list() []*v1.Pod { return m.left }

func (m *mirrors) Delete(context.Context, pod.Ref, types.UID) (bool, error) {
	if m.tries++; m.err == nil {
		m.left = nil
	}
	return m.err == nil, m.err
}
