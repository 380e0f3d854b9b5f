package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// document has the promises and, between the marks, the last figures.
const document = "docs/reliability.md"

const (
	beginMark = "<!-- begin: written by make trust -->"
	endMark   = "<!-- end -->"
)

// WriteDocument replaces the figures of the document.
func WriteDocument(root string, results []Result) error {
	file := filepath.Join(root, document)
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	text, err := replaceFigures(string(old), figures(results))
	if err != nil {
		return fmt.Errorf("write figures to %s: %w", document, err)
	}
	if text == string(old) {
		return nil
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

func replaceFigures(text, figures string) (string, error) {
	before, rest, begins := strings.Cut(text, beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return "", fmt.Errorf("there is no %q followed by %q", beginMark, endMark)
	}
	return before + beginMark + "\n" + figures + endMark + after, nil
}

func figures(results []Result) string {
	var b strings.Builder
	b.WriteString("| class | faults injected | survived | pods lost | restarts caused | leaks | commit | time | result |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		if r.Commit == "" {
			fmt.Fprintf(&b, "| %s | – | – | – | – | – | – | – | not run |\n", r.Class)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %s | %s | %s |\n",
			r.Class, r.Faults, r.Survived, r.PodsLost, r.Restarts, r.Leaks, short(r.Commit), duration(r.Seconds), outcome(r))
	}
	return b.String()
}
