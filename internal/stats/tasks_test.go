package stats

import (
	"os"
	"testing"
)

// A process may hold more files open than are listed at once.
func TestOpenFilesAreAllCounted(t *testing.T) {
	const more = 2*fdBatch + 1
	before, _ := openFiles(os.Getpid())
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Skip("so many files cannot be opened:", err)
		}
		defer f.Close()
	}
	if after, _ := openFiles(os.Getpid()); after < before+more {
		t.Errorf("%d files, want at least %d more than %d", after, more, before)
	}
}
