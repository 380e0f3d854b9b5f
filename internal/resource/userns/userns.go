// Package userns allocates a range of host user ids to each pod with a user namespace. It writes
// the mapping to the pod's directory before it is used, in the reference kubelet's format.
package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/require"
)

// Size is the least number of ids per pod, and the unit of larger ranges. Ranges begin at
// multiples of it, above the host's own range.
const Size = 65536

// endOfIDs is the end of the ids of a host, less the range with the id that means "none".
const endOfIDs = 1<<32 - Size

// mappingFile is the file of the mapping in the pod's directory.
const mappingFile = "userns"

// Config configures the allocation of ranges.
type Config struct {
	// RootDir is the kubelet's root directory, which holds the pods' directories.
	RootDir string
	// First and Count are the ids to allocate from, PerPod is the number of ids per pod; all
	// are multiples of Size.
	First, Count, PerPod int64
}

// mapping is the format of the file.
type mapping struct {
	UIDMappings []idMap `json:"uidMappings"`
	GIDMappings []idMap `json:"gidMappings"`
}

type idMap struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// Ranges allocates the pods' ranges. It is safe for concurrent use.
type Ranges struct {
	cfg Config
	log *slog.Logger

	mu     sync.Mutex
	ranges map[types.UID]int64 // by pod, the first id of the range
}

// New restores the ranges of an earlier run of the agent. It starts nothing.
func New(cfg Config, log *slog.Logger) (*Ranges, error) {
	if err := require.Set("new user namespace ranges", map[string]any{"log": log}); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(cfg.RootDir) {
		return nil, errors.New("new user namespace ranges: RootDir must be an absolute path")
	}
	cfg.Count = min(cfg.Count, endOfIDs-cfg.First) // a pod's ids must not wrap around to those of others
	if cfg.PerPod < Size || cfg.PerPod%Size != 0 || cfg.First < Size || cfg.First%Size != 0 || cfg.Count < cfg.PerPod || cfg.Count%Size != 0 {
		return nil, fmt.Errorf("new user namespace ranges: invalid ids %d to %d with %d per pod: all must be multiples of %d above the host's own",
			cfg.First, cfg.First+cfg.Count, cfg.PerPod, Size)
	}
	r := &Ranges{cfg: cfg, log: log, ranges: map[types.UID]int64{}}
	return r, r.restore()
}

// Check returns the errors of mappings that an earlier kubelet has left and that cannot be used: new
// containers of these pods would fail. It changes nothing.
func Check(cfg Config) (errs []error) {
	r := &Ranges{cfg: cfg}
	entries, _ := os.ReadDir(filepath.Join(cfg.RootDir, "pods")) // New reports a failure
	for _, e := range entries {
		if _, err := r.read(types.UID(e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errs
}

// restore reads the mappings of all pods on disk. An invalid file affects only its pod: Of fails
// for that pod instead of allocating another range.
func (r *Ranges) restore() error {
	entries, err := os.ReadDir(filepath.Join(r.cfg.RootDir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read user namespace mappings: %w", err)
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		first, err := r.read(uid)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			r.log.Error("user namespaces: cannot read mapping of pod", "podUID", uid, "err", err)
		default:
			r.ranges[uid] = first
		}
	}
	return nil
}

// Of returns the pod's user namespace, and allocates a range if it has none yet.
func (r *Ranges) Of(p *v1.Pod) (*runtimeapi.UserNamespace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, known := r.ranges[p.UID]
	if !known {
		if _, err := r.read(p.UID); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("map user namespace: %w", err)
		}
		free, err := r.freeRange()
		if err != nil {
			return nil, err
		}
		if err := r.write(p.UID, free); err != nil {
			return nil, fmt.Errorf("map user namespace: %w", err)
		}
		first = free
		r.ranges[p.UID] = first
	}
	ids := []*runtimeapi.IDMapping{{HostId: uint32(first), ContainerId: 0, Length: uint32(r.cfg.PerPod)}}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}, nil
}

// freeRange returns the first id of a free range.
func (r *Ranges) freeRange() (int64, error) {
	for _, evenGone := range []bool{false, true} {
		for id := r.cfg.First; id+r.cfg.PerPod <= r.cfg.First+r.cfg.Count; id += r.cfg.PerPod {
			if r.isFree(id, evenGone) {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("map user namespace: all %d ranges of ids are in use", r.cfg.Count/r.cfg.PerPod)
}

// isFree reports whether no pod has an id of the range. Ranges of an earlier agent may begin elsewhere, and overlap with
// this one. evenGone: it drops the ranges of pods that are gone.
func (r *Ranges) isFree(id int64, evenGone bool) bool {
	for owner, first := range r.ranges {
		if first >= id+r.cfg.PerPod || id >= first+r.cfg.PerPod {
			continue
		}
		if !evenGone || !r.gone(owner) {
			return false
		}
		delete(r.ranges, owner)
	}
	return true
}

// gone reports whether the pod's directory was removed. Of a pod that ended while no agent ran, nothing else is.
func (r *Ranges) gone(uid types.UID) bool {
	_, err := os.Lstat(r.path(uid))
	return errors.Is(err, fs.ErrNotExist)
}

// Release releases the range of a removed pod.
func (r *Ranges) Release(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ranges, uid)
}

func (r *Ranges) path(uid types.UID) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(uid), mappingFile)
}

// read returns the first id of the range in a pod's file.
func (r *Ranges) read(uid types.UID) (int64, error) {
	data, err := os.ReadFile(r.path(uid))
	if err != nil {
		return 0, err
	}
	var m mapping
	if err := json.Unmarshal(data, &m); err != nil {
		return 0, fmt.Errorf("read %s: %w", r.path(uid), err)
	}
	for _, ids := range [][]idMap{m.UIDMappings, m.GIDMappings} {
		if len(ids) != 1 || ids[0] != (idMap{HostID: m.UIDMappings[0].HostID, Length: uint32(r.cfg.PerPod)}) || ids[0].HostID%Size != 0 || ids[0].HostID < Size {
			return 0, fmt.Errorf("read %s: not a mapping of one range of %d ids above those of the host", r.path(uid), r.cfg.PerPod)
		}
	}
	return int64(m.UIDMappings[0].HostID), nil
}

// write writes the mapping atomically.
func (r *Ranges) write(uid types.UID, first int64) error {
	ids := []idMap{{HostID: uint32(first), Length: uint32(r.cfg.PerPod)}}
	data, err := json.Marshal(mapping{UIDMappings: ids, GIDMappings: ids})
	if err != nil {
		return err
	}
	path := r.path(uid)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return checkpoint.Replace(path, data, 0o644)
}
