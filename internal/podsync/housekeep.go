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

// KeeperDeps are the dependencies of a Keeper. Mirrors and OrphanMirrors may be nil without an
// API server.
type KeeperDeps struct {
	// Known reports whether a pod is in a source or has a worker.
	Known func(types.UID) bool
	// Folders and Cgroups list the pods that have a directory or a cgroup.
	Folders interface {
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
	// Held reports whether the runtime has something of the pod: then its worker removes it, not
	// the Keeper.
	Held func(types.UID) bool
	// Retain releases the resources of all pods but the known ones; may be nil.
	Retain func(ctx context.Context, known func(types.UID) bool) error
	// Thin removes dead containers beyond the node's maximum; may be nil.
	Thin func(context.Context) error
	// Swept is called after each run with the number of orphaned pod directories and of those
	// that could not be removed; may be nil.
	Swept func(found, left int)
	Log   *slog.Logger
}

// Keeper is the housekeeper: it removes what belongs to no pod, such as directories that a crashed
// kubelet left. It is a safety net; workers remove what belongs to their pods.
type Keeper struct {
	deps KeeperDeps
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

// NewKeeper validates and starts nothing.
func NewKeeper(deps KeeperDeps) (*Keeper, error) {
	if err := require.Set("new housekeeper", map[string]any{
		"Known": deps.Known, "Held": deps.Held, "Folders": deps.Folders, "Cgroups": deps.Cgroups,
		"Logs": deps.Logs, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Keeper{deps: deps, wake: notify.New(), retry: notify.New()}, nil
}

// Poke wakes Run. It never blocks. It must not be called before every source is ready: until then
// pods of that source look like orphans.
func (k *Keeper) Poke(context.Context) { k.wake.Notify() }

// Retry wakes Run if the last run failed in part, and has it delete orphaned mirrors: a volume's
// driver or the API server may be available again. It never blocks and may be called at any time.
func (k *Keeper) Retry() { k.retry.Notify() }

// Run removes orphans whenever it is woken, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
			k.round(ctx)
		case <-k.retry:
			if len(k.reported) > 0 {
				k.round(ctx)
			} else { // the mirror of a removed pod may be left
				k.current = map[operation]string{}
				k.mirrors(ctx)
				k.reported = k.current
			}
		}
	}
}

func (k *Keeper) round(ctx context.Context) {
	k.current = map[operation]string{}
	defer func() { k.reported = k.current }()
	k.dirs(ctx)
	k.cgroups(ctx)
	k.logs()
	k.mirrors(ctx)
	if k.deps.Thin != nil {
		k.log("remove dead containers", "", k.deps.Thin(ctx))
	}
	if k.deps.Retain != nil {
		k.log("release resources of unknown pods", "", k.deps.Retain(ctx, func(uid types.UID) bool { return !k.orphaned(uid) }))
	}
}

func (k *Keeper) dirs(ctx context.Context) {
	dirs, err := k.deps.Folders.PodDirs()
	k.log("list pod directories", "", err)
	found, left := 0, 0
	for _, uid := range dirs {
		if !k.orphaned(uid) {
			continue
		}
		found++
		if _, stuck := k.reported[operation{removeOrphanDir, uid}]; !stuck {
			k.deps.Log.Info("housekeeping: removing orphaned pod directory", "pod", uid)
		}
		if err := k.removeDir(ctx, uid); err != nil {
			left++
			k.log(removeOrphanDir, uid, err)
		}
	}
	k.log("unstage volumes that no pod uses", "", k.deps.Folders.UnstageOrphans())
	if k.deps.Swept != nil {
		k.deps.Swept(found, left)
	}
}

const removeOrphanDir = "remove orphaned pod directory"

func (k *Keeper) removeDir(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, orphanTimeout)
	defer cancel()
	if err := k.deps.Folders.Unmount(ctx, uid); err != nil {
		return fmt.Errorf("unmount volumes: %w", err)
	}
	return k.deps.Folders.RemovePodDir(uid)
}

func (k *Keeper) cgroups(ctx context.Context) {
	groups, err := k.deps.Cgroups.Pods()
	k.log("list pod cgroups", "", err)
	for _, uid := range groups {
		if k.orphaned(uid) {
			k.deps.Log.Info("housekeeping: removing orphaned pod cgroup", "pod", uid)
			k.log("remove orphaned pod cgroup", uid, k.deps.Cgroups.RemovePod(ctx, uid))
		}
	}
}

func (k *Keeper) logs() {
	refs, err := k.deps.Logs.PodLogs()
	k.log("list pod logs", "", err)
	for _, ref := range refs {
		if k.orphaned(ref.UID) {
			k.deps.Log.Info("housekeeping: removing orphaned pod logs", "pod", ref.String())
			k.log("remove orphaned pod logs", ref.UID, k.deps.Logs.RemoveLogs(ref))
		}
	}
}

// mirrors deletes the mirrors of static pods that no longer exist.
func (k *Keeper) mirrors(ctx context.Context) {
	if k.deps.Mirrors == nil || k.deps.OrphanMirrors == nil {
		return
	}
	for _, m := range k.deps.OrphanMirrors() {
		_, err := k.deps.Mirrors.Delete(ctx, pod.RefOf(m), m.UID)
		k.log("delete orphaned mirror", m.UID, err)
	}
}

func (k *Keeper) orphaned(uid types.UID) bool { return !k.deps.Known(uid) && !k.deps.Held(uid) }

// log records a failure, and logs it unless the last run had the same.
func (k *Keeper) log(name string, uid types.UID, err error) {
	if err == nil {
		return
	}
	failed := operation{name, uid}
	k.current[failed] = err.Error()
	if k.reported[failed] != k.current[failed] {
		k.deps.Log.Warn("housekeeping: "+name+" failed", "pod", uid, "err", err)
	}
}
