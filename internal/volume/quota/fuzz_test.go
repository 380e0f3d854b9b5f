package quota

import (
	"strings"
	"testing"
)

// FuzzProjects: lists that other programs write may have any lines. A line that is understood is written the
// same way.
func FuzzProjects(f *testing.F) {
	f.Add("1048577:/var/lib/kubelet/pods/a\n# comment\n:\n")
	f.Add("volume1048577:1048577\nx:-1\ny:99999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		lines := splitLines(text)
		if got := strings.Join(lines, "\n"); text != "" && got != strings.TrimSuffix(text, "\n") {
			t.Errorf("lines %q of %q", lines, text)
		}
		for _, line := range lines {
			if id, dir, ok := parseProject(line); ok && (strings.Contains(dir, "\n") || len(dir) >= len(line)) {
				t.Errorf("%q: project %d of %q", line, id, dir)
			}
			if name, id, ok := parseName(line); ok && strings.ContainsAny(name, ":\n") {
				t.Errorf("%q: project %d with the name %q", line, id, name)
			}
		}
	})
}
