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

// reporter is the part of testing.TB that showing logs needs.
type reporter interface {
	Helper()
	Name() string
	Failed() bool
	Logf(format string, args ...any)
	Cleanup(func())
}

// ShowLogs prints the end of every log of the bed if the test fails, and keeps them whole
// beside the bed.
func (b *Bed) ShowLogs(t reporter) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		logs, _ := filepath.Glob(filepath.Join(b.site.logDir(), "*.log"))
		slices.Sort(logs)
		for _, log := range logs {
			t.Logf("--- %s\n%s", filepath.Base(log), tail(log, 15))
		}
		test, _, _ := strings.Cut(t.Name(), "/")
		kept := filepath.Join(filepath.Dir(b.site.dir), "failed", time.Now().UTC().Format("0102-150405-")+test)
		if err := os.CopyFS(kept, os.DirFS(b.site.logDir())); err != nil {
			t.Logf("the logs could not be kept: %v", err)
			return
		}
		t.Logf("the whole logs are in %s", kept)
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
