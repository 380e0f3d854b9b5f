package bed

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// reporter is the part of testing.TB that ShowLogs needs.
type reporter interface {
	Helper()
	Name() string
	Failed() bool
	Logf(format string, args ...any)
	Cleanup(func())
}

// ShowLogs prints the end of every log of the bed if the test fails, and saves the complete logs
// in the cache directory.
func (b *Bed) ShowLogs(t reporter) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		logs, _ := filepath.Glob(filepath.Join(b.slot.logDir(), "*.log"))
		slices.Sort(logs)
		for _, log := range logs {
			t.Logf("--- %s\n%s", filepath.Base(log), tail(log, 15))
		}
		test, _, _ := strings.Cut(t.Name(), "/")
		saved := filepath.Join(filepath.Dir(b.slot.dir), "failed", time.Now().UTC().Format("0102-150405-")+test)
		if err := os.CopyFS(saved, os.DirFS(b.slot.logDir())); err != nil {
			t.Logf("failed to save logs: %v", err)
			return
		}
		t.Logf("complete logs: %s", saved)
	})
}

// tail returns the last n lines of a file, or why there are none.
func tail(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-n):], []byte("\n")))
}

func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return data, nil
}
