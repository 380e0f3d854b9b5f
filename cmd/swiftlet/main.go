// Command swiftlet runs pods on a Linux node, as the kubelet of a cluster or standalone.
package main

import (
	"context"
	"errors"
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
	// Restore the default handling after the first signal, so that a second one kills the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// errLogged is returned by a command that has logged its error.
var errLogged = errors.New("command failed")

// run runs a command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(commandArgs(args))
	if err := root.ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errLogged) {
			fmt.Fprintln(stderr, err)
		}
		return 1
	}
	return 0
}

// commandArgs selects the command that the binary is called by: kubelet, or kubectl-why, a plugin of kubectl.
func commandArgs(args []string) []string {
	switch filepath.Base(args[0]) {
	case "kubelet":
		return append([]string{"kubelet"}, args[1:]...)
	case "kubectl-why":
		return append([]string{"why", "--cluster"}, args[1:]...)
	}
	return args[1:]
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "swiftlet",
		Short: "Runs pods on a Linux node",
		Long: `Swiftlet runs pods on a Linux node.

  swiftlet up        runs pods from a directory of manifests, with a bundled runtime and network
  swiftlet down      stops it
  swiftlet kubectl   runs kubectl against it, with --api
  swiftlet backup    writes its objects to a file; restore reads them back
  swiftlet image     loads, lists and removes images
  swiftlet kubelet   runs the kubelet of a Kubernetes node
  swiftlet ui        prints a link to the page of "swiftlet up"
  swiftlet why       says why a pod or the node is not up
  swiftlet report    writes an archive to attach to a bug
  swiftlet check     finds out whether a kubelet would start, and what it would change`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(
		newUpCommand(), newDownCommand(), newKubectlCommand(), newBackupCommand(), newRestoreCommand(), newImageCommand(),
		newKubeletCommand(), newCheckCommand(), newUICommand(), newWhyCommand(), newReportCommand(), newVersionCommand(),
	)
	return root
}
