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
)

// The reference kubelet's files, in its root directory.
const (
	// Allocated is what pods were given.
	Allocated = "allocated_pods_state"
	// Actuated is what has come into force of it.
	Actuated = "actuated_pods_state"
)

// State is one of the files. Notes of pods are kept in memory until somebody needs them to
// survive a crash and calls Written: one write serves all who wait for it, so that a crowd
// of pods costs little more than one. It is safe for concurrent use.
type State struct {
	path string
	save func(path string, text []byte) error // replace
	// turn holds one token: who has it writes.
	turn chan struct{}

	mu      sync.Mutex
	pods    map[types.UID]pod.Resources
	notes   uint64 // made so far
	written uint64 // of them, how many the file has
	last    uint32 // checksum of what the file holds
}

// file is the reference kubelet's form: the content is a text within the text.
type file struct {
	Data     string `json:"data"`
	Checksum uint64 `json:"checksum"`
}

type content struct {
	Entries map[types.UID]pod.Resources `json:"entries,omitempty"`
}

// replace writes a file that only the agent is to read.
func replace(path string, text []byte) error { return checkpoint.Replace(path, text, 0o600) }

// Open reads the file at path; there need not be one. A file that cannot be understood is
// an error: to forget what pods were given would change them.
func Open(path string) (*State, error) {
	s := &State{path: path, save: replace, turn: make(chan struct{}, 1), pods: map[types.UID]pod.Resources{}}
	s.turn <- struct{}{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pods' resources: %w", err)
	}
	if err := s.decode(text); err != nil {
		return nil, fmt.Errorf("read pods' resources from %s: %w; drain this node and remove the file, then start again", path, err)
	}
	return s, nil
}

func (s *State) decode(text []byte) error {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	s.last = checksum(f.Data)
	if f.Checksum != uint64(s.last) {
		return errors.New("its content does not match its checksum")
	}
	var c content
	if err := json.Unmarshal([]byte(f.Data), &c); err != nil {
		return err
	}
	maps.Copy(s.pods, c.Entries)
	return nil
}

// checksum is the reference kubelet's: FNV-1a over a dump of the text, which shows its type.
func checksum(data string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("(string)" + data))
	return h.Sum32()
}

// Get is what was last noted of a pod. The result must not be changed.
func (s *State) Get(uid types.UID) (pod.Resources, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.pods[uid]
	return r, ok
}

// Note remembers what a pod has. It does not survive a crash before Written says so.
func (s *State) Note(uid types.UID, r pod.Resources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[uid] = r
	s.notes++
}

// Change is Note of what change makes of what was last noted.
func (s *State) Change(uid types.UID, change func(*pod.Resources)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pods[uid].Clone()
	change(&now)
	s.pods[uid] = now
	s.notes++
}

// Written waits until every note made so far survives a crash. It writes them itself, with
// those that others wait for, unless somebody has done so meanwhile.
func (s *State) Written(ctx context.Context) error {
	s.mu.Lock()
	mine, done := s.notes, s.written >= s.notes
	s.mu.Unlock()
	if done {
		return nil
	}
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.write(mine)
}

// write brings the file up to date where it lacks one of the first notes. Called in turn.
func (s *State) write(notes uint64) error {
	s.mu.Lock()
	if s.written >= notes {
		s.mu.Unlock()
		return nil
	}
	all, last := s.notes, s.last
	data, err := json.Marshal(content{s.pods})
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	sum := checksum(string(data))
	if sum != last { // the lock is not held meanwhile: nobody waits for the disk to read
		if err := s.replace(string(data), sum); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.last = all, sum
	return nil
}

func (s *State) replace(data string, sum uint32) error {
	text, err := json.Marshal(file{Data: data, Checksum: uint64(sum)})
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	if err := s.save(s.path, text); err != nil {
		return fmt.Errorf("write pods' resources: %w", err)
	}
	return nil
}

// Forget drops a pod. The file follows when it is next written: a pod too much in it does
// no harm. Only a static pod's UID comes again, and that only with the same spec.
func (s *State) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// Retain drops all pods but these.
func (s *State) Retain(keep func(types.UID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.pods, func(uid types.UID, _ pod.Resources) bool { return !keep(uid) })
}
