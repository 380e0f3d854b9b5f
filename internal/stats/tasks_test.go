package stats

import (
	"os"
	"testing"
)

// A process may have more open files than one batch.
func TestOpenFilesInSeveralBatches(t *testing.T) {
	const more = 2*fdBatch + 1
	before, _ := openFiles(os.Getpid())
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Skip("cannot open so many files:", err)
		}
		defer f.Close()
	}
	if after, _ := openFiles(os.Getpid()); after < before+more {
		t.Errorf("%d files, want at least %d more than %d", after, more, before)
	}
}
