package allocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

func newState(t *testing.T) *State {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), Allocated))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Callers that arrive during a write share the next one.
func TestConcurrentWritesAreMerged(t *testing.T) {
	s := newState(t)
	started, release := make(chan struct{}), make(chan struct{})
	writes := 0
	s.save = func(path string, text []byte) error {
		if writes++; writes == 1 {
			close(started)
			<-release
		}
		return replace(path, text)
	}
	var all sync.WaitGroup
	written := func(uid types.UID) {
		s.Note(uid, pod.ResourcesOf(testPod("1", 1)))
		all.Go(func() {
			if err := s.Written(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	written("first")
	<-started
	const crowd = 50
	for i := range crowd {
		written(types.UID(fmt.Sprint(i)))
	}
	if _, known := s.Get("49"); !known { // readers do not wait for the disk
		t.Error("a change is not visible during a write")
	}
	close(release)
	all.Wait()
	if writes != 2 {
		t.Errorf("%d writes, want 2", writes)
	}
	again, err := Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.pods) != crowd+1 {
		t.Errorf("the file has %d pods", len(again.pods))
	}
	if err := s.Written(t.Context()); err != nil || writes != 2 {
		t.Errorf("without changes: %d writes, error %v", writes, err)
	}
}

// A change that could not be written is written by the next call.
func TestFailedWriteIsRetried(t *testing.T) {
	s := newState(t)
	full := errors.New("no space left")
	s.save = func(string, []byte) error { return full }
	s.Note("u", pod.ResourcesOf(testPod("1", 1)))
	if err := s.Written(t.Context()); !errors.Is(err, full) {
		t.Fatalf("the error is %v", err)
	}
	s.save = replace
	if err := s.Written(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if r, known := again.Get("u"); !known || cpuOf(r) != "1" {
		t.Errorf("read back %v", r)
	}
}

// A canceled caller does not wait for a hanging disk.
func TestWrittenIsCanceled(t *testing.T) {
	s := newState(t)
	started, release := make(chan struct{}), make(chan struct{})
	s.save = func(string, []byte) error { close(started); <-release; return nil }
	s.Note("u", pod.ResourcesOf(testPod("1", 1)))
	first := make(chan error)
	go func() { first <- s.Written(context.Background()) }()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Written(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// TestFileIsOneDocument: the file is put together from the texts of pods, and reads as if it was encoded as a
// whole.
func TestFileIsOneDocument(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), Allocated))
	if err != nil {
		t.Fatal(err)
	}
	content := stateContent{Entries: map[types.UID]pod.Resources{}}
	for i := range 12 {
		want, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.encode(nil); err != nil || string(got) != string(want) {
			t.Fatalf("%d pods are encoded as %s and %v, want %s", i, got, err, want)
		}
		file, err := json.Marshal(stateFile{Data: string(want), Checksum: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if got := appendFile(nil, want, uint32(i)); string(got) != string(file) {
			t.Fatalf("the file of %d pods is %s, want %s", i, got, file)
		}
		uid, r := types.UID(fmt.Sprint(i, "<&\"")), pod.ResourcesOf(testPod(fmt.Sprint(i+1), 1))
		s.Note(uid, r)
		content.Entries[uid] = r
	}
}

// TestCountsOfWrite: each start of a pod writes those of all others, so it uses the buffers of the last write.
func TestCountsOfWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector changes what is allocated")
	}
	s := newState(t)
	size := 0
	s.save = func(_ string, text []byte) error { size = len(text); return nil }
	write := func(uid int) {
		s.Note(types.UID(fmt.Sprint(uid)), pod.ResourcesOf(testPod("1", 1)))
		if err := s.Written(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for uid := range 1000 {
		s.Note(types.UID(fmt.Sprint(uid)), pod.ResourcesOf(testPod("1", 1)))
	}
	write(1000)
	const writes = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range writes {
		write(2000 + i)
	}
	runtime.ReadMemStats(&after)
	if got := int(after.TotalAlloc-before.TotalAlloc) / writes; size == 0 || got > size {
		t.Errorf("a write of %d bytes allocates %d", size, got)
	}
}

// BenchmarkEncode encodes the file after a change of one of many pods.
func BenchmarkEncode(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), Allocated))
	if err != nil {
		b.Fatal(err)
	}
	s.save = func(string, []byte) error { return nil }
	for i := range 1000 {
		s.Note(types.UID(fmt.Sprint(i)), pod.ResourcesOf(testPod("1", 1)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Note("0", pod.ResourcesOf(testPod(fmt.Sprint(i+1), 1)))
		if err := s.Written(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// The disk writes of concurrent pod starts.
func BenchmarkWritten(b *testing.B) {
	for _, podCount := range []int{1, 60} {
		b.Run(fmt.Sprint(podCount, " pods"), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), Allocated))
			if err != nil {
				b.Fatal(err)
			}
			writes := 0
			s.save = func(path string, text []byte) error { writes++; return replace(path, text) }
			for i := 0; b.Loop(); i++ {
				var all sync.WaitGroup
				for k := range podCount {
					all.Go(func() {
						s.Note(types.UID(fmt.Sprint(k)), pod.ResourcesOf(testPod(fmt.Sprint(i+1), 1)))
						if err := s.Written(context.Background()); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
		})
	}
}
