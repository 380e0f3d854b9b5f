package allocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

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

// State is one of the files. It is safe for concurrent use.
type State struct {
	path string

	mu    sync.Mutex
	pods  map[types.UID]pod.Resources
	last  uint32        // checksum of what the file holds
	noted chan struct{} // holds at most one: "the file is behind"
}

// file is the reference kubelet's form: the content is a text within the text.
type file struct {
	Data     string `json:"data"`
	Checksum uint64 `json:"checksum"`
}

type content struct {
	Entries map[types.UID]pod.Resources `json:"entries,omitempty"`
}

// Open reads the file at path; there need not be one. A file that cannot be understood is
// an error: to forget what pods were given would change them.
func Open(path string) (*State, error) {
	s := &State{path: path, pods: map[types.UID]pod.Resources{}, noted: make(chan struct{}, 1)}
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

// Get is what is written down of a pod. The result must not be changed.
func (s *State) Get(uid types.UID) (pod.Resources, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.pods[uid]
	return r, ok
}

// Set writes down what a pod has. When it returns nil that survives a crash.
func (s *State) Set(uid types.UID, r pod.Resources) error {
	return s.Change(uid, func(now *pod.Resources) { *now = r })
}

// Change is Set of what change makes of what is written down now.
func (s *State) Change(uid types.UID, change func(*pod.Resources)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.pods[uid]
	now := before.Clone()
	change(&now)
	s.pods[uid] = now
	err := s.save()
	if err != nil {
		s.pods[uid] = before
		if !known {
			delete(s.pods, uid)
		}
	}
	return err
}

// Note is Set without the wait for the disk: Run writes it down soon. It is for what a lost
// note does not harm, as that of a pod whose spec says the same.
func (s *State) Note(uid types.UID, r pod.Resources) {
	s.mu.Lock()
	s.pods[uid] = r
	s.mu.Unlock()
	select {
	case s.noted <- struct{}{}:
	default:
	}
}

// lag is how long notes are collected: pods come in crowds.
const lag = time.Second

// Run writes notes down until ctx ends, and then once more.
func (s *State) Run(ctx context.Context, clock clock.Clock, log *slog.Logger) error {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.noted:
			timer := clock.NewTimer(lag)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
		}
		s.mu.Lock()
		err := s.save()
		s.mu.Unlock()
		if err != nil { // the next note, or change, tries again
			log.Warn("pods' resources not written down", "file", s.path, "err", err)
		}
	}
	return nil
}

// Forget drops a pod. The file follows when it is next written: a pod too much in it does
// no harm, its UID never comes again.
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

// save replaces the file where its content would change. Called under the lock.
func (s *State) save() error {
	data, err := json.Marshal(content{s.pods})
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	sum := checksum(string(data))
	if sum == s.last {
		return nil
	}
	text, err := json.Marshal(file{Data: string(data), Checksum: uint64(sum)})
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	if err := checkpoint.Replace(s.path, text); err != nil {
		return fmt.Errorf("write pods' resources: %w", err)
	}
	s.last = sum
	return nil
}
