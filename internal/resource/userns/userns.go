// Package userns gives pods that do not share the host's users a range of user ids of their
// own. What was given is written into the pod's folder before it is used, in the form of
// the reference kubelet, so that it outlives the agent and a change of agents.
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
)

// Size is how many ids a pod gets at least, and the unit of what it may be given more of:
// as many as 16 bits can tell apart. Ranges begin at multiples of it, above the host's own.
const Size = 65536

// file holds a pod's mapping, in its folder.
const file = "userns"

// Config says where pods have their folders and which ranges may be given.
type Config struct {
	// RootDir holds the pods' folders.
	RootDir string
	// First and Count bound the ids that may be given, PerPod is how many each pod gets;
	// all multiples of Size.
	First, Count, PerPod int64
}

// mapping is the file's form.
type mapping struct {
	UIDMappings []idMap `json:"uidMappings"`
	GIDMappings []idMap `json:"gidMappings"`
}

type idMap struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

// Ranges knows which pod has which range. It is safe for concurrent use.
type Ranges struct {
	cfg Config
	log *slog.Logger

	mu    sync.Mutex
	given map[types.UID]int64 // the first id of its range
	taken map[int64]types.UID
}

// New reads what was given by an earlier agent. It starts nothing.
func New(cfg Config, log *slog.Logger) (*Ranges, error) {
	if !filepath.IsAbs(cfg.RootDir) || log == nil {
		return nil, errors.New("user namespaces: an absolute root directory and a log are needed")
	}
	if cfg.PerPod < Size || cfg.PerPod%Size != 0 || cfg.First < Size || cfg.First%Size != 0 || cfg.Count < cfg.PerPod || cfg.Count%Size != 0 {
		return nil, fmt.Errorf("user namespaces: ids %d to %d cannot be given out by %d: all must be multiples of %d above the host's own",
			cfg.First, cfg.First+cfg.Count, cfg.PerPod, Size)
	}
	r := &Ranges{cfg: cfg, log: log, given: map[types.UID]int64{}, taken: map[int64]types.UID{}}
	return r, r.restore()
}

// restore takes note of the ranges that pods on the disk have. A file that makes no sense
// concerns its own pod alone, which will be refused rather than given another range.
func (r *Ranges) restore() error {
	entries, err := os.ReadDir(filepath.Join(r.cfg.RootDir, "pods"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the pods' user namespaces: %w", err)
	}
	for _, e := range entries {
		uid := types.UID(e.Name())
		first, err := r.read(uid)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			r.log.Error("a pod's user namespace cannot be read", "pod", uid, "err", err)
		default:
			r.given[uid], r.taken[first] = first, uid
		}
	}
	return nil
}

// Of is the pod's user namespace; it is given one where it has none yet.
func (r *Ranges) Of(p *v1.Pod) (*runtimeapi.UserNamespace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, known := r.given[p.UID]
	if !known {
		if _, err := r.read(p.UID); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("map user namespace: %w", err)
		}
		free, err := r.free()
		if err != nil {
			return nil, err
		}
		if err := r.write(p.UID, free); err != nil {
			return nil, fmt.Errorf("map user namespace: %w", err)
		}
		first = free
		r.given[p.UID], r.taken[first] = first, p.UID
	}
	ids := []*runtimeapi.IDMapping{{HostId: uint32(first), ContainerId: 0, Length: uint32(r.cfg.PerPod)}}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}, nil
}

// free finds a range that nobody has.
func (r *Ranges) free() (int64, error) {
	for id := r.cfg.First; id+r.cfg.PerPod <= r.cfg.First+r.cfg.Count; id += r.cfg.PerPod {
		if _, taken := r.taken[id]; !taken {
			return id, nil
		}
	}
	return 0, fmt.Errorf("map user namespace: all %d ranges of ids are in use", r.cfg.Count/r.cfg.PerPod)
}

// Release takes a pod's range back, once nothing of the pod is left.
func (r *Ranges) Release(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, known := r.given[uid]; known {
		delete(r.given, uid)
		delete(r.taken, first)
	}
}

func (r *Ranges) path(uid types.UID) string {
	return filepath.Join(r.cfg.RootDir, "pods", string(uid), file)
}

// read finds the first id of the range in a pod's file.
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
		if len(ids) != 1 || ids[0] != (idMap{HostID: m.UIDMappings[0].HostID, Length: uint32(r.cfg.PerPod)}) || ids[0].HostID%Size != 0 {
			return 0, fmt.Errorf("read %s: it does not map one whole range of %d ids", r.path(uid), r.cfg.PerPod)
		}
	}
	return int64(m.UIDMappings[0].HostID), nil
}

// write puts the mapping down so that it is there as a whole or not at all.
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
