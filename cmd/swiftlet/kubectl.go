package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"swiftlet/internal/standalone"
)

const kubectlHelp = `Runs kubectl with its arguments. Without KUBECONFIG or --kubeconfig it talks to the node that
"swiftlet up --api" runs on this machine, with the default --root.`

func newKubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [arguments of kubectl]",
		Short:              "Runs kubectl against the node of \"swiftlet up --api\"",
		Long:               kubectlHelp,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return execKubectl(args) },
		ValidArgsFunction:  completeKubectl,
	}
}

// execKubectl replaces this process by kubectl.
func execKubectl(args []string) error {
	program, err := findKubectl(args)
	if err != nil {
		return fmt.Errorf("run kubectl: %w", err)
	}
	err = syscall.Exec(program, append([]string{"kubectl"}, args...), os.Environ())
	return fmt.Errorf("run kubectl: %w", err)
}

// findKubectl returns its path, and sets KUBECONFIG unless the arguments or the environment name another file.
func findKubectl(args []string) (program string, err error) {
	hashes, err := standalone.ParseBundleHashes(bundleHashes)
	if err != nil {
		return "", err
	}
	program = filepath.Join(executableDir(), "api", "kubectl")
	if os.Geteuid() == 0 {
		if err := hashes.Check("api/kubectl", program); err != nil {
			return "", err
		}
	}
	if os.Getenv("KUBECONFIG") != "" || namesKubeconfig(args) {
		return program, nil
	}
	file := filepath.Join(defaultRoot, standalone.KubeconfigName)
	if err := readable(file); err != nil {
		return "", err
	}
	return program, os.Setenv("KUBECONFIG", file)
}

// namesKubeconfig reports whether kubectl's arguments have the flag --kubeconfig. What follows "--" are not
// kubectl's.
func namesKubeconfig(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--kubeconfig" || strings.HasPrefix(arg, "--kubeconfig=") {
			return true
		}
	}
	return false
}

// readable says what to do if the kubeconfig cannot be read. kubectl would try another server.
func readable(file string) error {
	f, err := os.Open(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w; start the node with `swiftlet up --api`, or set KUBECONFIG", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; use root, or start the node with --kubeconfig-group", err)
	case err != nil:
		return err
	}
	return f.Close()
}
