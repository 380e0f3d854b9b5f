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

// KeeperDeps is what a Keeper works with. Mirrors and OrphanMirrors may be nil where there
// is no API server.
type KeeperDeps struct {
	// Known reports whether a pod has an owner that looks after it.
	Known func(types.UID) bool
	// Folders and Cgroups list pods of which something is on the disk or in the kernel.
	Folders interface {
		PodDirs() ([]types.UID, error)
		Unmount(context.Context, types.UID) error
		RemovePodDir(types.UID) error
		// UnstageOrphans begins to unstage what is staged for no pod.
		UnstageOrphans() error
	}
	Cgroups interface {
		Pods() ([]types.UID, error)
		RemovePod(context.Context, types.UID) error
	}
	// Logs lists and removes the log folders of pods.
	Logs interface {
		PodLogs() ([]pod.Ref, error)
		RemoveLogs(pod.Ref) error
	}
	Mirrors       Mirrors
	OrphanMirrors func() []*v1.Pod
	// Held reports whether the runtime still has something of the pod: then its worker, not
	// the keeper, is to take it down.
	Held func(types.UID) bool
	// Retain takes back what was given to pods that are not known; may be nil.
	Retain func(ctx context.Context, known func(types.UID) bool) error
	// Thin removes what the node keeps too much of; may be nil.
	Thin func(context.Context) error
	// Swept is told after each round how many orphaned pods' folders there were and how
	// many of them stayed; may be nil.
	Swept func(found, left int)
	Log   *slog.Logger
}

// Keeper removes what no pod owns: the leavings of an agent that died at the wrong moment.
// It is a safety net; pods take away their own things.
type Keeper struct {
	deps KeeperDeps
	poke notify.Signal
	// again asks for a round if the last one met trouble.
	again notify.Signal
	// told is what the last round met, by what was tried: trouble that lasts is told once.
	// met is what this round has met so far. Both belong to Run.
	told, met map[trouble]string
}

// trouble is something that could not be done for a pod.
type trouble struct {
	what string
	uid  types.UID
}

// folderPatience bounds the work on one orphan: one that hangs must not keep the others.
const folderPatience = time.Minute

// NewKeeper validates and starts nothing.
func NewKeeper(deps KeeperDeps) (*Keeper, error) {
	if err := require.Set("new housekeeper", map[string]any{
		"Known": deps.Known, "Held": deps.Held, "Folders": deps.Folders, "Cgroups": deps.Cgroups,
		"Logs": deps.Logs, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	return &Keeper{deps: deps, poke: notify.New(), again: notify.New()}, nil
}

// Poke asks for a round. It never blocks. It must not be called before every source has
// said which pods it wants.
func (k *Keeper) Poke(context.Context) { k.poke.Notify() }

// Retry asks for another round if the last one could not do all, and for mirrors that were
// left: what was lacking, such as a volume's driver or the API server, may be there. It never blocks, and may be called at any time.
func (k *Keeper) Retry() { k.again.Notify() }

// Run makes rounds when poked, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.poke:
			k.round(ctx)
		case <-k.again:
			if len(k.told) > 0 {
				k.round(ctx)
			} else { // a pod that went may have left its mirror
				k.met = map[trouble]string{}
				k.mirrors(ctx)
				k.told = k.met
			}
		}
	}
}

func (k *Keeper) round(ctx context.Context) {
	k.met = map[trouble]string{}
	defer func() { k.told = k.met }()
	k.folders(ctx)
	k.cgroups(ctx)
	k.logs()
	k.mirrors(ctx)
	if k.deps.Thin != nil {
		k.log("remove dead containers", "", k.deps.Thin(ctx))
	}
	if k.deps.Retain != nil {
		k.log("take back what unknown pods were given", "", k.deps.Retain(ctx, func(uid types.UID) bool { return !k.orphaned(uid) }))
	}
}

func (k *Keeper) folders(ctx context.Context) {
	folders, err := k.deps.Folders.PodDirs()
	k.log("list pod folders", "", err)
	found, left := 0, 0
	for _, uid := range folders {
		if !k.orphaned(uid) {
			continue
		}
		found++
		if _, stuck := k.told[trouble{removingFolder, uid}]; !stuck {
			k.deps.Log.Info("removing the folder of a pod that nobody wants", "pod", uid)
		}
		if err := k.removeFolder(ctx, uid); err != nil {
			left++
			k.log(removingFolder, uid, err)
		}
	}
	k.log("unstage volumes that no pod uses", "", k.deps.Folders.UnstageOrphans())
	if k.deps.Swept != nil {
		k.deps.Swept(found, left)
	}
}

const removingFolder = "remove an orphaned pod's folder"

func (k *Keeper) removeFolder(ctx context.Context, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, folderPatience)
	defer cancel()
	if err := k.deps.Folders.Unmount(ctx, uid); err != nil {
		return fmt.Errorf("unmount its volumes: %w", err)
	}
	return k.deps.Folders.RemovePodDir(uid)
}

func (k *Keeper) cgroups(ctx context.Context) {
	groups, err := k.deps.Cgroups.Pods()
	k.log("list pod cgroups", "", err)
	for _, uid := range groups {
		if k.orphaned(uid) {
			k.deps.Log.Info("removing the cgroup of a pod that nobody wants", "pod", uid)
			k.log("remove an orphaned pod's cgroup", uid, k.deps.Cgroups.RemovePod(ctx, uid))
		}
	}
}

func (k *Keeper) logs() {
	refs, err := k.deps.Logs.PodLogs()
	k.log("list pod logs", "", err)
	for _, ref := range refs {
		if k.orphaned(ref.UID) {
			k.deps.Log.Info("removing the logs of a pod that nobody wants", "pod", ref.String())
			k.log("remove an orphaned pod's logs", ref.UID, k.deps.Logs.RemoveLogs(ref))
		}
	}
}

// mirrors deletes the images of static pods that are gone.
func (k *Keeper) mirrors(ctx context.Context) {
	if k.deps.Mirrors == nil || k.deps.OrphanMirrors == nil {
		return
	}
	for _, m := range k.deps.OrphanMirrors() {
		_, err := k.deps.Mirrors.Delete(ctx, pod.RefOf(m), m.UID)
		k.log("delete an orphaned mirror", m.UID, err)
	}
}

func (k *Keeper) orphaned(uid types.UID) bool { return !k.deps.Known(uid) && !k.deps.Held(uid) }

// log tells of trouble, unless the last round met the same.
func (k *Keeper) log(what string, uid types.UID, err error) {
	if err == nil {
		return
	}
	of := trouble{what, uid}
	k.met[of] = err.Error()
	if k.told[of] != k.met[of] {
		k.deps.Log.Warn("housekeeping: "+what, "pod", uid, "err", err)
	}
}
