package stats

import (
	"os"
	"testing"
)

// A process may have more open files than one batch.
func TestOpenFilesInSeveralBatches(t *testing.T) {
	const more = 2*fdBatch + 1
	before, _, _ := openFiles(os.Getpid(), maxReadFiles)
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if after, _, _ := openFiles(os.Getpid(), maxReadFiles); after < before+more {
		t.Errorf("%d files, want at least %d more than %d", after, more, before)
	}
}

// A pod can have a hundred million open files. Few of them are read, and the others are counted by the kernel.
func TestOpenFilesAreReadUpToABudget(t *testing.T) {
	for range 3 * fdBatch {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	all, _, _ := openFiles(os.Getpid(), maxReadFiles)
	for _, budget := range []uint64{0, 10, fdBatch + 1} {
		files, read, _ := openFiles(os.Getpid(), budget)
		if read != budget {
			t.Errorf("%d files were read, want %d", read, budget)
		}
		if info, err := os.Stat("/proc/self/fd"); err == nil && info.Size() > 0 && files+10 < all {
			t.Errorf("%d files, want about %d", files, all)
		}
	}
}
