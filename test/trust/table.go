package trust

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// PrintTable writes one line per result.
func PrintTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "class\tfaults injected\tsurvived\tpods lost\trestarts caused\tleaks\tcommit\ttime\tresult")
	for _, r := range results {
		if r.Commit == "" {
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t-\t-\t-\tnot run\n", r.Class)
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n",
			r.Class, r.Faults, r.Survived, r.PodsLost, r.Restarts, r.Leaks, short(r.Commit), duration(r.Seconds), outcome(r))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

func outcome(r Result) string {
	if r.Passed() {
		return "passed"
	}
	return "failed"
}

// short abbreviates a commit and keeps the mark of uncommitted changes.
func short(commit string) string {
	hash, changed := strings.CutSuffix(commit, dirty)
	hash = hash[:min(len(hash), 12)]
	if changed {
		hash += dirty
	}
	return hash
}

func duration(seconds int) string {
	return (time.Duration(seconds) * time.Second).String()
}
