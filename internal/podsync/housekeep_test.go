package podsync

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// remains is what a node holds of pods that nobody wants.
type remains struct {
	folders []types.UID
	stuck   map[types.UID]error
}

func (r *remains) PodDirs() ([]types.UID, error) { return slices.Clone(r.folders), nil }
func (r *remains) UnstageOrphans() error         { return nil }

func (r *remains) Unmount(ctx context.Context, uid types.UID) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("it may take for ever")
	}
	return r.stuck[uid]
}

func (r *remains) RemovePodDir(uid types.UID) error {
	r.folders = slices.DeleteFunc(r.folders, func(u types.UID) bool { return u == uid })
	return nil
}

func (r *remains) Pods() ([]types.UID, error)                 { return nil, nil }
func (r *remains) RemovePod(context.Context, types.UID) error { return nil }
func (r *remains) PodLogs() ([]pod.Ref, error)                { return nil, nil }
func (r *remains) RemoveLogs(pod.Ref) error                   { return nil }

// TestStuckOrphanIsToldOnce: a folder that cannot be removed keeps no other, and is told of
// again only when the reason changes.
func TestStuckOrphanIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	r := &remains{folders: []types.UID{"stuck", "free"}, stuck: map[types.UID]error{"stuck": errors.New("device is busy")}}
	no := func(types.UID) bool { return false }
	k, err := NewKeeper(KeeperDeps{Known: no, Held: no, Folders: r, Cgroups: r, Logs: r, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		k.round(t.Context())
	}
	if !slices.Equal(r.folders, []types.UID{"stuck"}) {
		t.Errorf("left: %v", r.folders)
	}
	if n := strings.Count(log.String(), "device is busy"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "nobody wants"); n != 2 {
		t.Errorf("%d pods were begun with, want 2:\n%s", n, log.String())
	}
	r.stuck["stuck"] = errors.New("no driver")
	k.round(t.Context())
	if !strings.Contains(log.String(), "no driver") {
		t.Error("a new reason was not told")
	}
	r.stuck = nil
	k.round(t.Context())
	if len(r.folders) != 0 {
		t.Errorf("left: %v", r.folders)
	}
}

// TestKeeperRetries: a round that could not do all is made again when something has changed,
// and one that was never asked for is not.
func TestKeeperRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remains{folders: []types.UID{"stuck"}, stuck: map[types.UID]error{"stuck": errors.New("no driver")}}
		no := func(types.UID) bool { return false }
		k, err := NewKeeper(KeeperDeps{Known: no, Held: no, Folders: r, Cgroups: r, Logs: r, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = k.Run(ctx) }()
		k.Poke(ctx)
		synctest.Wait()
		r.stuck = nil
		k.Retry()
		synctest.Wait()
		if len(r.folders) != 0 {
			t.Errorf("left: %v", r.folders)
		}
		r.folders = []types.UID{"new"} // of a pod that is wanted for all the keeper knows
		k.Retry()
		synctest.Wait()
		if len(r.folders) != 1 {
			t.Error("a round was made without being asked for")
		}
	})
}

// A mirror that a pod left behind while the API server was away goes when it is back.
func TestKeeperDeletesMirrorsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := &remains{}, &mirrors{err: errors.New("connection refused")}
		no := func(types.UID) bool { return false }
		k, err := NewKeeper(KeeperDeps{Known: no, Held: no, Folders: r, Cgroups: r, Logs: r, Mirrors: m, OrphanMirrors: m.list, Log: slog.New(slog.DiscardHandler)})
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

// mirrors are those that nobody wants.
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
