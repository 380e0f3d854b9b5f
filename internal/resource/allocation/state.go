package allocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/pod"
	"swiftlet/internal/resource/statefile"
)

// File names of the reference kubelet, in its root directory.
const (
	// Allocated holds the allocated resources of pods.
	Allocated = "allocated_pods_state"
	// Actuated holds the resources that the runtime has applied.
	Actuated = "actuated_pods_state"
)

// State is one of the files. Changes stay in memory until a call of Written: one write serves all
// callers that wait, so that many pods cost little more than one. It is safe for concurrent use.
type State struct {
	path string
	save func(path string, text []byte) error // replace
	// semaphore holds one token; the goroutine that takes it writes the file.
	semaphore chan struct{}
	// recovering: the file was lost, so a pod that runs may have an allocation that is not known.
	recovering bool

	mu       sync.Mutex
	pods     map[types.UID]pod.Resources
	changes  uint64 // number of changes so far
	written  uint64 // number of changes that the file contains
	checksum uint32 // of the file's content
}

// stateFile is the reference kubelet's format. Data is stateContent as a JSON string.
type stateFile struct {
	Data     string `json:"data"`
	Checksum uint64 `json:"checksum"`
}

type stateContent struct {
	Entries map[types.UID]pod.Resources `json:"entries,omitempty"`
}

// replace writes a file that only the agent may read.
func replace(path string, text []byte) error { return checkpoint.Replace(path, text, 0o600) }

// Open reads the file at path, which may be missing. A corrupt file is an error that wraps
// statefile.ErrCorrupt.
func Open(path string) (*State, error) {
	s := &State{path: path, save: replace, semaphore: make(chan struct{}, 1), pods: map[types.UID]pod.Resources{}}
	s.semaphore <- struct{}{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pods' resources: %w", err)
	}
	if err := s.decode(text); err != nil {
		return nil, fmt.Errorf("read pods' resources from %s: %w: %w", path, statefile.ErrCorrupt, err)
	}
	return s, nil
}

// Check returns an error if the file exists and cannot be used. It changes nothing.
func Check(path string) error {
	_, err := Open(path)
	return err
}

func (s *State) decode(text []byte) error {
	var f stateFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	s.checksum = checksum(f.Data)
	if f.Checksum != uint64(s.checksum) {
		return errors.New("content does not match checksum")
	}
	var c stateContent
	if err := json.Unmarshal([]byte(f.Data), &c); err != nil {
		return err
	}
	maps.Copy(s.pods, c.Entries)
	return nil
}

// checksum is the reference kubelet's: FNV-1a over a dump of the string, which begins with its type.
func checksum(data string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("(string)" + data))
	return h.Sum32()
}

// Get returns a pod's resources. Callers must not modify the result.
func (s *State) Get(uid types.UID) (pod.Resources, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.pods[uid]
	return r, ok
}

// Note sets a pod's resources in memory. Written persists them.
func (s *State) Note(uid types.UID, r pod.Resources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[uid] = r
	s.changes++
}

// Change modifies a pod's resources in memory. Written persists them.
func (s *State) Change(uid types.UID, change func(*pod.Resources)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pods[uid].Clone()
	change(&now)
	s.pods[uid] = now
	s.changes++
}

// Written waits until every change made so far is persisted. It writes the file itself, with all
// changes so far, unless another caller has done so meanwhile.
func (s *State) Written(ctx context.Context) error {
	s.mu.Lock()
	upTo, done := s.changes, s.written >= s.changes
	s.mu.Unlock()
	if done {
		return nil
	}
	select {
	case <-s.semaphore:
		defer func() { s.semaphore <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.write(upTo)
}

// write writes the file unless it contains the first upTo changes. The caller holds the semaphore.
func (s *State) write(upTo uint64) error {
	s.mu.Lock()
	if s.written >= upTo {
		s.mu.Unlock()
		return nil
	}
	all, lastChecksum := s.changes, s.checksum
	data, err := json.Marshal(stateContent{s.pods})
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	sum := checksum(string(data))
	if sum != lastChecksum { // without the lock, so that readers do not wait for the disk
		if err := s.replace(string(data), sum); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.checksum = all, sum
	return nil
}

func (s *State) replace(data string, sum uint32) error {
	text, err := json.Marshal(stateFile{Data: data, Checksum: uint64(sum)})
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	if err := s.save(s.path, text); err != nil {
		return fmt.Errorf("write pods' resources: %w", err)
	}
	return nil
}

// Forget deletes a pod in memory. The next write removes it from the file, where it does no harm:
// only a static pod's UID can return, with the same spec.
func (s *State) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// Retain deletes all other pods.
func (s *State) Retain(keep func(types.UID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.pods, func(uid types.UID, _ pod.Resources) bool { return !keep(uid) })
}
