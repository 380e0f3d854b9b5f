// Command swiftlet runs pods on a Linux node: as a drop-in for the kubelet of a cluster,
// or by itself.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// After the first signal the default handling is back: a second one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main without the process around it; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(commandArgs(args))
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// commandArgs makes the binary stand in for the kubelet when it is called by that name.
func commandArgs(args []string) []string {
	if filepath.Base(args[0]) == "kubelet" {
		return append([]string{"kubelet"}, args[1:]...)
	}
	return args[1:]
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "swiftlet",
		Short: "Runs pods on a Linux node",
		Long: `Swiftlet runs pods on a Linux node.

  swiftlet up        runs the pods of a directory, on a machine without anything else
  swiftlet kubelet   is the kubelet of a Kubernetes cluster's node
  swiftlet check     tells what a kubelet's flags and configuration files amount to`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.AddCommand(newUpCommand(), newKubeletCommand(), newCheckCommand(), newVersionCommand())
	return root
}
