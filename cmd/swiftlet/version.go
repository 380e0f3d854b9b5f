package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"swiftlet/internal/config"
)

// Set by the build: -ldflags "-X main.version=… -X main.commit=…".
var version, commit string

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), buildDescription())
		},
	}
}

// buildDescription describes the binary. Without the linker flags above, the commit comes from the
// build information.
func buildDescription() string {
	v, c := version, commit
	if info, ok := debug.ReadBuildInfo(); ok && c == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					c += " with changes"
				}
			}
		}
	}
	return fmt.Sprintf("swiftlet   %s\ncommit     %s\ngo         %s %s/%s\nin place of Kubernetes %s\n",
		known(v), known(c), runtime.Version(), runtime.GOOS, runtime.GOARCH, config.KubernetesVersion)
}

func known(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
