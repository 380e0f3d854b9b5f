package swap

import (
	"context"
	"errors"
	"fmt"
	"io"

	"swiftlet/internal/config"
	"swiftlet/internal/resource"
	"swiftlet/internal/resource/userns"
)

// Report is what a swap would change.
type Report struct {
	Settings   []string // that have another value or effect
	StateFiles []string // that this kubelet cannot use
	Pods       []string // whose containers it would stop
	Running    int      // number of running pods

	podsUnknown error
}

// Compare compares the running kubelet with what this one would do with the configuration.
func Compare(ctx context.Context, cfg *config.Config, running Kubelet) Report {
	r := Report{Settings: configuration(ctx, cfg, running), StateFiles: unusable(cfg)}
	r.Pods, r.Running, r.podsUnknown = disturbed(ctx, cfg)
	return r
}

// unusable lists the state files that this kubelet cannot use, and the effect of that.
func unusable(cfg *config.Config) (files []string) {
	for _, file := range resource.StateFiles {
		if err := file.Check(cfg.Flags.RootDir); err != nil {
			effect := file.IfDamaged
			if effect == "" || !resource.IsDamaged(err) {
				effect = "the kubelet would not start"
			}
			files = append(files, fmt.Sprintf("%s: %s; %s", file.Name, err, effect))
		}
	}
	ids, err := userns.ConfigFrom(cfg)
	if err != nil {
		return files // a check of package preflight reports it
	}
	for _, err := range userns.Check(ids) {
		files = append(files, fmt.Sprintf("user namespace: %s; new containers of the pod would fail", err))
	}
	return files
}

// Err returns an error if the swap would stop containers or lose state, or if that is not known.
func (r Report) Err() error {
	switch {
	case r.podsUnknown != nil:
		return fmt.Errorf("compare pods: %w", r.podsUnknown)
	case len(r.Pods)+len(r.StateFiles) > 0:
		return errors.New("a swap would disturb this node")
	}
	return nil
}

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	for _, part := range []struct {
		title, none string
		changes     []string
	}{
		{"settings", "no change", r.Settings},
		{"state files", "all can be used", r.StateFiles},
		{"pods", fmt.Sprintf("%d run, none would be restarted", r.Running), r.Pods},
	} {
		if part.title == "pods" && r.podsUnknown != nil {
			fmt.Fprintln(w, "pods: unknown")
			continue
		}
		if len(part.changes) == 0 {
			fmt.Fprintf(w, "%s: %s\n", part.title, part.none)
			continue
		}
		fmt.Fprintf(w, "%s:\n", part.title)
		for _, change := range part.changes {
			fmt.Fprintf(w, "  %s\n", change)
		}
	}
}
