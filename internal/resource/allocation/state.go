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
	"slices"
	"strconv"
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
	pods     map[types.UID]entry
	changes  uint64 // number of changes so far
	written  uint64 // number of changes that the file contains
	checksum uint32 // of the file's content
}

// entry is the resources of one pod, and how the file has them: encoding those of all pods for each change
// would take longer than the rest of a pod's start.
type entry struct {
	pod.Resources
	text []byte
	err  error // of encoding; a write returns it
}

func newEntry(uid types.UID, r pod.Resources) entry {
	text, err := json.Marshal(map[types.UID]pod.Resources{uid: r})
	if err != nil {
		return entry{r, nil, err}
	}
	return entry{r, slices.Clone(text[len("{") : len(text)-len("}")]), nil}
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
	s := &State{path: path, save: replace, semaphore: make(chan struct{}, 1), pods: map[types.UID]entry{}}
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
	for uid, r := range c.Entries {
		s.pods[uid] = newEntry(uid, r)
	}
	return nil
}

// checksum is the reference kubelet's: FNV-1a over a dump of the string, which begins with its type.
func checksum[T string | []byte](data T) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte("(string)"))
	_, _ = h.Write([]byte(data))
	return h.Sum32()
}

// Get returns a pod's resources. Callers must not modify the result.
func (s *State) Get(uid types.UID) (pod.Resources, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.pods[uid]
	return e.Resources, ok
}

// Note sets a pod's resources in memory. Written persists them.
func (s *State) Note(uid types.UID, r pod.Resources) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[uid] = newEntry(uid, r)
	s.changes++
}

// Change modifies a pod's resources in memory. Written persists them.
func (s *State) Change(uid types.UID, change func(*pod.Resources)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pods[uid].Clone()
	change(&now)
	s.pods[uid] = newEntry(uid, now)
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
	buffer := buffers.Get().(*buffer)
	defer buffers.Put(buffer)
	var err error
	buffer.data, err = s.encode(buffer.data[:0])
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("encode pods' resources: %w", err)
	}
	sum := checksum(buffer.data)
	if sum != lastChecksum { // without the lock, so that readers do not wait for the disk
		buffer.file = appendFile(buffer.file[:0], buffer.data, sum)
		if err := s.save(s.path, buffer.file); err != nil {
			return fmt.Errorf("write pods' resources: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.checksum = all, sum
	return nil
}

// buffer has what one write needs. All pods are encoded for each start of one, so buffers are used again until the
// garbage collector takes them.
type buffer struct{ data, file []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// encode appends the JSON of a stateContent. The caller holds mu.
func (s *State) encode(text []byte) ([]byte, error) {
	if len(s.pods) == 0 {
		return append(text, "{}"...), nil
	}
	text = append(text, `{"entries":`...)
	before := byte('{')
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		e := s.pods[uid]
		if e.err != nil {
			return nil, e.err
		}
		text = append(append(text, before), e.text...)
		before = ','
	}
	return append(text, "}}"...), nil
}

// appendFile appends the JSON of a stateFile. In data, which is JSON from encoding/json, only quotes and backslashes
// have to be escaped.
func appendFile(text, data []byte, sum uint32) []byte {
	text = append(text, `{"data":"`...)
	for _, c := range data {
		if c == '"' || c == '\\' {
			text = append(text, '\\')
		}
		text = append(text, c)
	}
	text = append(text, `","checksum":`...)
	return append(strconv.AppendUint(text, uint64(sum), 10), '}')
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
	maps.DeleteFunc(s.pods, func(uid types.UID, _ entry) bool { return !keep(uid) })
}
