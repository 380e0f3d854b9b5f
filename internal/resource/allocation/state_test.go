package allocation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

// Whoever comes while the file is being written shares the next write.
func TestWrittenTogether(t *testing.T) {
	s := newState(t)
	begun, release := make(chan struct{}), make(chan struct{})
	writes := 0
	s.save = func(path string, text []byte) error {
		if writes++; writes == 1 {
			close(begun)
			<-release
		}
		return replace(path, text)
	}
	var all sync.WaitGroup
	written := func(uid types.UID) {
		s.Note(uid, pod.ResourcesOf(asking("1", 1)))
		all.Go(func() {
			if err := s.Written(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	written("first")
	<-begun
	const crowd = 50
	for i := range crowd {
		written(types.UID(fmt.Sprint(i)))
	}
	if _, known := s.Get("49"); !known { // nor does anybody wait for the disk to read
		t.Error("a note is not seen while the file is being written")
	}
	close(release)
	all.Wait()
	if writes != 2 {
		t.Errorf("it took %d writes", writes)
	}
	again, err := Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.pods) != crowd+1 {
		t.Errorf("the file has %d pods", len(again.pods))
	}
	if err := s.Written(t.Context()); err != nil || writes != 2 {
		t.Errorf("with nothing new there were %d writes, error %v", writes, err)
	}
}

// A note that could not be written is not forgotten.
func TestWrittenFails(t *testing.T) {
	s := newState(t)
	full := errors.New("no space left")
	s.save = func(string, []byte) error { return full }
	s.Note("u", pod.ResourcesOf(asking("1", 1)))
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
	if r, known := again.Get("u"); !known || held(r) != "1" {
		t.Errorf("read back %v", r)
	}
}

// Who has lost interest does not wait for a disk that hangs.
func TestWrittenAbandoned(t *testing.T) {
	s := newState(t)
	begun, release := make(chan struct{}), make(chan struct{})
	s.save = func(string, []byte) error { close(begun); <-release; return nil }
	s.Note("u", pod.ResourcesOf(asking("1", 1)))
	first := make(chan error)
	go func() { first <- s.Written(context.Background()) }()
	<-begun
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

// What a crowd of pods waits for the disk, beside what else their starts take.
func BenchmarkWritten(b *testing.B) {
	for _, crowd := range []int{1, 60} {
		b.Run(fmt.Sprint(crowd, " pods"), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), Allocated))
			if err != nil {
				b.Fatal(err)
			}
			writes := 0
			s.save = func(path string, text []byte) error { writes++; return replace(path, text) }
			for i := 0; b.Loop(); i++ {
				var all sync.WaitGroup
				for k := range crowd {
					all.Go(func() {
						s.Note(types.UID(fmt.Sprint(k)), pod.ResourcesOf(asking(fmt.Sprint(i+1), 1)))
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
