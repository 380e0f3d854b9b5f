package path

import (
	"os"
	"path/filepath"
	"testing"

	"swiftlet/internal/pod"
)

// A runtime that was wiped knows nothing of earlier instances, and without an API server
// nobody does but their logs: they are not written over, and restarts go on being counted.
func TestRestartsAreCountedByLogs(t *testing.T) {
	for name, c := range map[string]struct {
		logs []string
		want string
	}{
		"never ran":           {nil, "  main running, 0 restarts"},
		"one":                 {[]string{"0.log"}, "  main running, 1 restarts"},
		"some, one rotated":   {[]string{"2.log", "3.log", "3.log.20261115-200000.gz"}, "  main running, 4 restarts"},
		"not those of others": {[]string{"x.log", "old.9.log"}, "  main running, 0 restarts"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				dir := filepath.Join(w.root, "logs", pod.Ref{Namespace: "default", Name: "web", UID: "web-uid"}.LogDirName(), "main")
				for _, log := range c.logs {
					if err := os.MkdirAll(dir, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, log), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.wishes.apply([]byte("metadata: {name: web, namespace: default}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
					t.Fatal(err)
				}
				w.settle()
				w.expect(w.showStatus(), []string{"web Running ready", c.want})
			})
		})
	}
}
