package path

import (
	"os"
	"path/filepath"
	"testing"

	"swiftlet/internal/pod"
)

// If the runtime has lost earlier containers, and there is no status in the API server, the log files
// have the restart count: logs are not overwritten, and the count continues.
func TestRestartCountFromLogs(t *testing.T) {
	for name, c := range map[string]struct {
		logs []string
		want string
	}{
		"no logs":                      {nil, "  main running, 0 restarts"},
		"one log":                      {[]string{"0.log"}, "  main running, 1 restarts"},
		"several logs, one is rotated": {[]string{"2.log", "3.log", "3.log.20261115-200000.gz"}, "  main running, 4 restarts"},
		"files with other names":       {[]string{"x.log", "old.9.log"}, "  main running, 0 restarts"},
	} {
		t.Run(name, func(t *testing.T) {
			onTestNode(t, func(w *testNode) {
				dir := filepath.Join(w.root, "logs", pod.Ref{Namespace: "default", Name: "web", UID: "web-uid"}.LogDirName(), "main")
				for _, log := range c.logs {
					if err := os.MkdirAll(dir, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, log), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.store.apply([]byte("metadata: {name: web, namespace: default}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
					t.Fatal(err)
				}
				w.settle()
				w.expect(w.showStatus(), []string{"web Running ready", c.want})
			})
		})
	}
}
