// Upstream-diff compares the flags, configuration fields, feature gates, metrics, event reasons, HTTP
// endpoints and Node fields of a version of the reference kubelet with ours. It reads the source code of
// both. With the next version of Kubernetes its output is the list of work.
//
// Usage: go run ./test/upstreamdiff [-json] [-all] [VERSION]
//
// explained.tsv says why differences from our own version are intended; a difference that it explains is
// only counted. With our own version, anything else and every entry that explains nothing is an error.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"swiftlet/internal/config"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON")
	all := flag.Bool("all", false, "print explained differences as well, with their reasons")
	flag.Parse()
	version := cmp.Or(flag.Arg(0), config.KubernetesVersion)
	if err := report(context.Background(), os.Stdout, version, *asJSON, *all); err != nil {
		fmt.Fprintln(os.Stderr, "upstream-diff:", err)
		os.Exit(1)
	}
}

func report(ctx context.Context, w io.Writer, version string, asJSON, all bool) error {
	u, err := openUpstream(ctx, version)
	if err != nil {
		return err
	}
	differences, stale, err := explained(ctx, u)
	if err != nil {
		return err
	}
	if asJSON {
		text, err := json.MarshalIndent(differences, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", text)
	} else {
		write(w, version, differences, all)
	}
	if version != config.KubernetesVersion {
		return nil
	}
	return unexplained(differences, stale)
}

// unexplained is an error that names differences without a reason and reasons without a difference.
func unexplained(differences []difference, stale []*explanation) error {
	var errs []error
	for _, e := range stale {
		errs = append(errs, fmt.Errorf("explained.tsv: %s %s is not a difference: remove the line", e.kind, e.name))
	}
	for _, d := range differences {
		if d.Reason == "" {
			errs = append(errs, fmt.Errorf("%s %s: %s, and explained.tsv does not say why", d.Kind, d.Name, d.What))
		}
	}
	return errors.Join(errs...)
}

// explained returns the differences from a version with their reasons, and entries that explain none.
func explained(ctx context.Context, u *upstream) ([]difference, []*explanation, error) {
	entries, err := parseExplanations(explainedTable)
	if err != nil {
		return nil, nil, err
	}
	theirs, err := u.lists()
	if err != nil {
		return nil, nil, err
	}
	c, err := openCheckout(ctx)
	if err != nil {
		return nil, nil, err
	}
	ours, err := c.lists()
	if err != nil {
		return nil, nil, err
	}
	differences := compare(theirs, ours)
	return differences, explain(differences, entries), nil
}

// open is how the reason of a difference begins that is still to be worked on.
const open = "open:"

func write(w io.Writer, version string, differences []difference, all bool) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	intended, pending, heading := 0, 0, ""
	for _, kind := range kinds {
		for _, what := range []string{missing, extra, differs} {
			for _, d := range differences {
				if d.Kind != kind || d.What != what {
					continue
				}
				switch {
				case strings.HasPrefix(d.Reason, open):
					pending++
				case d.Reason != "":
					intended++
				}
				if d.Reason != "" && !all {
					continue
				}
				if title := kind + ": " + what; title != heading {
					heading = title
					fmt.Fprintf(table, "\n%s\n", title)
				}
				fmt.Fprintf(table, "  %s\t%s\t%s\n", d.Name, values(d), d.Reason)
			}
		}
	}
	table.Flush()
	fmt.Fprintf(w, "\n%s: %d differences; %d are intended and %d are open by test/upstreamdiff/explained.tsv, %d are new\n",
		version, len(differences), intended, pending, len(differences)-intended-pending)
}

func values(d difference) string {
	switch d.What {
	case differs:
		return fmt.Sprintf("%s there, %s here", orNothing(d.Theirs), orNothing(d.Ours))
	case missing:
		return d.Theirs
	}
	return d.Ours
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
