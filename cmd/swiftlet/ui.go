package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"swiftlet/internal/standalone"
)

const uiHelp = `Prints a link to the page of "swiftlet up" on this machine. The link works once, within an hour, and opens a session
that ends with "swiftlet up". Whoever has it is an administrator of the node.

Only root and members of --kubeconfig-group may do this.`

func newUICommand() *cobra.Command {
	var f reachFlags
	command := &cobra.Command{
		Use:   "ui",
		Short: "Prints a link to the page of \"swiftlet up\"",
		Long:  uiHelp,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.SilenceUsage = true
			return printLink(command.Context(), f, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.root, "root", defaultRoot, "--root of \"swiftlet up\"")
	flags.IntVar(&f.port, "port", 10250, "--port of \"swiftlet up\"")
	return command
}

func printLink(ctx context.Context, f reachFlags, out io.Writer) error {
	a, err := f.connect()
	if err != nil {
		return err
	}
	if a.proxied {
		return fmt.Errorf("find the node: \"swiftlet up\" has not run with --root %s", f.root)
	}
	path, err := a.newLink(ctx)
	if gone := (*notFoundError)(nil); errors.As(err, &gone) {
		return errors.New("this node has no page: it runs with --ui=false, or is not that of \"swiftlet up\"")
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, standalone.PageURL(f.port, path))
	return err
}

// newLink has the kubelet make a link and returns its path.
func (a *agentAPI) newLink(ctx context.Context) (string, error) {
	text, err := a.send(ctx, http.MethodPost, "link to the page", "/ui/link", "", "application/json")
	if err != nil {
		return "", err
	}
	var link struct{ Path string }
	if err := json.Unmarshal(text, &link); err != nil {
		return "", fmt.Errorf("read link to the page: %w", err)
	}
	return link.Path, nil
}
