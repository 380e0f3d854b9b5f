package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"swiftlet/internal/config"
)

// Set by the build: -ldflags "-X main.version=… -X main.commit=… -X main.bundleHashes=…".
var version, commit, bundleHashes string

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

// ownVersion is the version of Swiftlet, as opposed to that of Kubernetes: the commit if there is none.
func ownVersion() string { return cmp.Or(version, sourceCommit(), "unknown") }

func buildDescription() string {
	return fmt.Sprintf("swiftlet   %s\ncommit     %s\ngo         %s %s/%s\nin place of Kubernetes %s\n",
		cmp.Or(version, "unknown"), cmp.Or(sourceCommit(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, config.KubernetesVersion)
}

// sourceCommit is the commit of the source code. Without the linker flags above, it comes from the build
// information.
func sourceCommit() string {
	c := commit
	if info, ok := debug.ReadBuildInfo(); ok && c == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					c += "-dirty"
				}
			}
		}
	}
	return c
}
