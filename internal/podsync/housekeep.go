package podsync

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// reported has the failures of the last run: a failure that persists is logged once.
	// current has those of this run. Both belong to Run.
	reported, current map[operation]string
}

// operation is what failed, and for which pod.
type operation struct {
	name string
	uid  types.UID
}

// orphanTimeout limits the work on one orphan: one that hangs must not block the others.
const orphanTimeout = time.Minute

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
				h.current = map[operation]string{}
				h.mirrors(ctx)
				h.reported = h.current
			}
		}
	}
}

func (h *Housekeeper) round(ctx context.Context) {
	h.current = map[operation]string{}
	defer func() { h.reported = h.current }()
	h.dirs(ctx)
	h.cgroups(ctx)
	h.logs()
	h.mirrors(ctx)
	if h.deps.RemoveSurplus != nil {
		h.log("remove dead containers", "", h.deps.RemoveSurplus(ctx))
	}
	if h.deps.ReleaseUnknown != nil {
		h.log("release resources of unknown pods", "", h.deps.ReleaseUnknown(ctx, func(uid types.UID) bool { return !h.orphaned(uid) }))
	}
}

func (h *Housekeeper) dirs(ctx context.Context) {
	dirs, err := h.deps.Directories.PodDirs()
	h.log("list pod directories", "", err)
	found, left := 0, 0
	for _, uid := range dirs {
		if !h.orphaned(uid) {
			continue
		}
		found++
		if _, stuck := h.reported[operation{removeOrphanDir, uid}]; !stuck {
			h.deps.Log.Info("housekeeping: removing orphaned pod directory", "podUID", uid)
		}
		if err := h.removeDir(ctx, uid); err != nil {
			left++
			h.log(removeOrphanDir, uid, err)
		}
	}
	h.log("unstage volumes that no pod uses", "", h.deps.Directories.UnstageOrphans())
	if h.deps.OrphansFound != nil {
		h.deps.OrphansFound(found, left)
	}
}

const removeOrphanDir = "remove orphaned pod directory"

func (h *Housekeeper) removeDir(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	if err := h.deps.Directories.Unmount(ctx, uid); err != nil {
		return fmt.Errorf("unmount volumes: %w", err)
	}
	return h.deps.Directories.RemovePodDir(uid)
}

func (h *Housekeeper) cgroups(ctx context.Context) {
	groups, err := h.deps.Cgroups.Pods()
	h.log("list pod cgroups", "", err)
	for _, uid := range groups {
		if h.orphaned(uid) {
			h.deps.Log.Info("housekeeping: removing orphaned pod cgroup", "podUID", uid)
			h.log("remove orphaned pod cgroup", uid, h.deps.Cgroups.RemovePod(ctx, uid))
		}
	}
}

func (h *Housekeeper) logs() {
	refs, err := h.deps.Logs.PodLogs()
	h.log("list pod logs", "", err)
	for _, ref := range refs {
		if h.orphaned(ref.UID) {
			h.deps.Log.Info("housekeeping: removing orphaned pod logs", ref.Attr())
			h.log("remove orphaned pod logs", ref.UID, h.deps.Logs.RemoveLogs(ref))
		}
	}
}

// mirrors deletes the mirrors of static pods that no longer exist.
func (h *Housekeeper) mirrors(ctx context.Context) {
	if h.deps.Mirrors == nil || h.deps.OrphanMirrors == nil {
		return
	}
	for _, m := range h.deps.OrphanMirrors() {
		_, err := h.deps.Mirrors.Delete(ctx, pod.RefOf(m), m.UID)
		h.log("delete orphaned mirror", m.UID, err)
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
	h.current[failed] = err.Error()
	if h.reported[failed] != h.current[failed] {
		h.deps.Log.Warn("housekeeping: "+name+" failed", "podUID", uid, "err", err)
	}
}
