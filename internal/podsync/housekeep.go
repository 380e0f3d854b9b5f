package podsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/contain"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// HousekeeperDeps are the dependencies of a Housekeeper. Mirrors and OrphanMirrors may be nil without an
// API server.
type HousekeeperDeps struct {
	// Known reports whether a pod is in a source or has a worker.
	Known func(types.UID) bool
	// Directories and Cgroups list the pods that have a directory or a cgroup.
	Directories interface {
		PodDirs() ([]types.UID, error)
		Unmount(context.Context, types.UID) error
		RemovePodDir(types.UID) error
		// UnstageOrphans starts to unstage volumes that are staged for no pod.
		UnstageOrphans() error
	}
	Cgroups interface {
		Pods() ([]types.UID, error)
		RemovePod(context.Context, types.UID) error
	}
	// Logs lists and removes the log directories of pods.
	Logs interface {
		PodLogs() ([]pod.Ref, error)
		RemoveLogs(pod.Ref) error
	}
	Mirrors       Mirrors
	OrphanMirrors func() []*v1.Pod
	// InRuntime reports whether the runtime has something of the pod: then its worker removes it, not
	// the Housekeeper.
	InRuntime func(types.UID) bool
	// ReleaseUnknown releases the resources of all pods but the known ones; may be nil.
	ReleaseUnknown func(ctx context.Context, known func(types.UID) bool) error
	// RemoveSurplus removes dead containers beyond the node's maximum; may be nil.
	RemoveSurplus func(context.Context) error
	// OrphansFound is called after each run with the number of orphaned pod directories and of those
	// that could not be removed; may be nil.
	OrphansFound func(found, left int)
	Log          *slog.Logger
}

// Housekeeper removes what belongs to no pod, such as directories that a crashed kubelet left. It is a
// safety net; workers remove what belongs to their pods.
type Housekeeper struct {
	deps HousekeeperDeps
	wake notify.Signal
	// retry wakes Run if the last run failed in part.
	retry notify.Signal
	// calls has the operations that hang; one of them must not block the others.
	calls contain.Calls
	// reported has the failures of the last run: a failure that persists is logged once.
	// current has those of this run, guarded by mu during a run.
	reported, current map[operation]failure
	mu                sync.Mutex
}

// failure is the error of an operation; hung: it did not return in time.
type failure struct {
	message string
	hung    bool
}

// operation is what failed, and for which pod.
type operation struct {
	name string
	uid  types.UID
}

// Limits of the work on one orphan, of a node-wide step, and of an orphan on which the last run timed out.
const (
	orphanTimeout = time.Minute
	stepTimeout   = 2 * time.Minute
	stuckTimeout  = 2 * time.Second
	// parallelOrphans is how many orphans are removed at the same time: those that hang delay others only
	// when there are that many of them.
	parallelOrphans = 8
)

// NewHousekeeper validates and starts nothing.
func NewHousekeeper(deps HousekeeperDeps) (*Housekeeper, error) {
	if err := require.Set("new housekeeper", map[string]any{
		"Known": deps.Known, "InRuntime": deps.InRuntime, "Directories": deps.Directories, "Cgroups": deps.Cgroups,
		"Logs": deps.Logs, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Housekeeper{deps: deps, wake: notify.New(), retry: notify.New()}, nil
}

// Notify wakes Run. It never blocks. It must not be called before every source is ready: until then
// pods of that source look like orphans.
func (h *Housekeeper) Notify(context.Context) { h.wake.Notify() }

// Retry wakes Run if the last run failed in part, and has it delete orphaned mirrors: a volume's
// driver or the API server may be available again. It never blocks and may be called at any time.
func (h *Housekeeper) Retry() { h.retry.Notify() }

// Run removes orphans whenever it is woken, until ctx ends.
func (h *Housekeeper) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
			h.round(ctx)
		case <-h.retry:
			if len(h.reported) > 0 {
				h.round(ctx)
			} else { // the mirror of a removed pod may be left
				h.current = map[operation]failure{}
				h.mirrors(ctx)
				h.reported = h.current
			}
		}
	}
}

func (h *Housekeeper) round(ctx context.Context) {
	h.current = map[operation]failure{}
	defer func() { h.reported = h.current }()
	h.dirs(ctx)
	h.cgroups(ctx)
	h.logs(ctx)
	h.mirrors(ctx)
	if h.deps.RemoveSurplus != nil {
		h.step(ctx, "remove dead containers", "", h.deps.RemoveSurplus)
	}
	if h.deps.ReleaseUnknown != nil {
		h.step(ctx, "release resources of unknown pods", "", func(ctx context.Context) error {
			return h.deps.ReleaseUnknown(ctx, func(uid types.UID) bool { return !h.orphaned(uid) })
		})
	}
}

// step runs one operation with a deadline, also if it hangs in the kernel, and logs its failure. An
// operation that hung in the last run is given little time. It reports whether the operation succeeded.
func (h *Housekeeper) step(ctx context.Context, name string, uid types.UID, run func(context.Context) error) bool {
	timeout := stepTimeout
	if uid != "" {
		timeout = orphanTimeout
	}
	if h.reported[operation{name, uid}].hung {
		timeout = stuckTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := h.calls.Do(ctx, strings.TrimSpace(name+" "+string(uid)), func() error { return run(ctx) })
	h.log(name, uid, err)
	return err == nil
}

// eachOrphan calls remove for the orphans among the pods, several at a time. It returns the number of
// orphans and of those that are left.
func (h *Housekeeper) eachOrphan(ctx context.Context, name string, pods []pod.Ref, remove func(context.Context, pod.Ref) error) (found, left int) {
	var tasks errgroup.Group
	tasks.SetLimit(parallelOrphans)
	var failed atomic.Int64
	for _, ref := range pods {
		if !h.orphaned(ref.UID) {
			continue
		}
		found++
		if _, stuck := h.reported[operation{name, ref.UID}]; !stuck {
			h.deps.Log.Info("housekeeping: "+strings.Replace(name, "remove", "removing", 1), "podUID", ref.UID, "pod", ref.Name)
		}
		tasks.Go(func() error {
			if !h.orphaned(ref.UID) {
				return nil // the pod has come back meanwhile, as a static pod may
			}
			if !h.step(ctx, name, ref.UID, func(ctx context.Context) error { return remove(ctx, ref) }) {
				failed.Add(1)
			}
			return nil
		})
	}
	_ = tasks.Wait() // failures are logged
	return found, int(failed.Load())
}

func refsOf(uids []types.UID) []pod.Ref {
	refs := make([]pod.Ref, 0, len(uids))
	for _, uid := range uids {
		refs = append(refs, pod.Ref{UID: uid})
	}
	return refs
}

func (h *Housekeeper) dirs(ctx context.Context) {
	dirs, err := h.deps.Directories.PodDirs()
	h.log("list pod directories", "", err)
	found, left := h.eachOrphan(ctx, "remove orphaned pod directory", refsOf(dirs), func(ctx context.Context, ref pod.Ref) error {
		if err := h.deps.Directories.Unmount(ctx, ref.UID); err != nil {
			return fmt.Errorf("unmount volumes: %w", err)
		}
		if !h.orphaned(ref.UID) {
			return nil // it has come back during the unmount
		}
		return h.deps.Directories.RemovePodDir(ref.UID)
	})
	h.step(ctx, "unstage volumes that no pod uses", "", func(context.Context) error { return h.deps.Directories.UnstageOrphans() })
	if h.deps.OrphansFound != nil {
		h.deps.OrphansFound(found, left)
	}
}

// cgroups removes the cgroups of orphans. A process in an uninterruptible system call keeps its cgroup.
func (h *Housekeeper) cgroups(ctx context.Context) {
	groups, err := h.deps.Cgroups.Pods()
	h.log("list pod cgroups", "", err)
	h.eachOrphan(ctx, "remove orphaned pod cgroup", refsOf(groups), func(ctx context.Context, ref pod.Ref) error {
		return h.deps.Cgroups.RemovePod(ctx, ref.UID)
	})
}

func (h *Housekeeper) logs(ctx context.Context) {
	refs, err := h.deps.Logs.PodLogs()
	h.log("list pod logs", "", err)
	h.eachOrphan(ctx, "remove orphaned pod logs", refs, func(_ context.Context, ref pod.Ref) error { return h.deps.Logs.RemoveLogs(ref) })
}

// mirrors deletes the mirrors of static pods that no longer exist.
func (h *Housekeeper) mirrors(ctx context.Context) {
	if h.deps.Mirrors == nil || h.deps.OrphanMirrors == nil {
		return
	}
	for _, m := range h.deps.OrphanMirrors() {
		h.step(ctx, "delete orphaned mirror", m.UID, func(ctx context.Context) error {
			_, err := h.deps.Mirrors.Delete(ctx, pod.RefOf(m), m.UID)
			return err
		})
	}
}

func (h *Housekeeper) orphaned(uid types.UID) bool {
	return !h.deps.Known(uid) && !h.deps.InRuntime(uid)
}

// log records a failure, and logs it unless the last run had the same.
func (h *Housekeeper) log(name string, uid types.UID, err error) {
	if err == nil {
		return
	}
	failed := operation{name, uid}
	h.mu.Lock()
	h.current[failed] = failure{err.Error(), errors.Is(err, context.DeadlineExceeded)}
	h.mu.Unlock()
	if h.reported[failed].message != err.Error() {
		h.deps.Log.Warn("housekeeping: "+name+" failed", "podUID", uid, "err", err)
	}
}
