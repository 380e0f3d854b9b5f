package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The generated part of a document is between these lines.
const (
	beginMark = "<!-- bench: begin. make bench writes this part. -->"
	endMark   = "<!-- bench: end -->"
)

// Publish writes the charts and replaces the generated parts of README.md and docs/performance.md.
func (r *Result) Publish(root string) error {
	for _, c := range Charts {
		if err := os.WriteFile(filepath.Join(root, "docs", c.File), []byte(r.SVG(c)), 0o644); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	if err := ReplacePart(filepath.Join(root, "README.md"), beginMark, endMark, r.front()); err != nil {
		return err
	}
	return ReplacePart(filepath.Join(root, "docs", "performance.md"), beginMark, endMark, r.full())
}

// front is what README shows.
func (r *Result) front() string {
	return fmt.Sprintf("![%s](docs/%s)\n\n%s\n%s\n", Charts[0].Title, Charts[0].File, r.Markdown(true), r.Caption())
}

// full is what docs/performance.md shows.
func (r *Result) full() string {
	text := r.Caption() + fmt.Sprintf(" The run took %.0f minutes.\n", r.Minutes)
	for _, c := range Charts {
		text += fmt.Sprintf("\n![%s](%s)\n", c.Title, c.File)
	}
	text += "\n" + r.Markdown(false)
	if len(r.Skipped) > 0 {
		text += "\nNot measured:\n\n"
		for _, what := range r.Skipped {
			text += "- " + strings.ReplaceAll(what, "\n", " ") + "\n"
		}
	}
	return text
}

// ReplacePart replaces what is between the marks of a file.
func ReplacePart(path, begin, end, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	before, rest, found := strings.Cut(string(old), begin+"\n")
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("publish: %s has no line %q followed by %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n\n"+text+"\n"+end+after), 0o644)
}
