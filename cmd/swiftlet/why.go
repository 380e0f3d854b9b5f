package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"swiftlet/internal/why"
)

const whyHelp = `Says why a pod is not up, not ready, or does not end: one sentence with the step that blocks, since
when, what to change and when it is tried again. The steps of the pod's start and end follow.

On a node of "swiftlet up" it asks the kubelet of this machine, with the certificate below --root. With
--kubeconfig, --context or --cluster, or on a machine without "swiftlet up", it asks the kubelet of the
pod's node through the API server, which takes the right to get nodes/proxy. With --server it asks the
kubelet at that address.

"kubectl why" is the same command, if this program is called kubectl-why and in the PATH.`

// whyFlags are the flags of `swiftlet why`.
type whyFlags struct {
	namespace, output string
	watch             bool
	reach             reachFlags
	clock             clock.Clock
}

// watchInterval is the time between two requests of --watch.
const watchInterval = time.Second

func newWhyCommand() *cobra.Command {
	f := whyFlags{clock: clock.RealClock{}}
	command := &cobra.Command{
		Use:   "why POD|NAMESPACE/POD|node [NODE]",
		Short: "Says why a pod or the node is not up",
		Long:  whyHelp,
		Args:  cobra.RangeArgs(1, 2),
		Example: `  swiftlet why web
  swiftlet why kube-system/coredns-7db6d8ff4d-2xk7v --watch
  swiftlet why node
  kubectl why web -n shop -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			command.SilenceUsage = true
			return f.run(command.Context(), command.OutOrStdout(), args)
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return f.completePods(command, args, toComplete)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the pod; the default is that of the context, or \"default\"")
	flags.StringVarP(&f.output, "output", "o", "", "json, or text for people if empty")
	flags.BoolVarP(&f.watch, "watch", "w", false, "print again whenever the sentence changes, until the pod is gone")
	f.reach.add(command)
	return command
}

// report is a why.Report or a why.NodeReport.
type report interface {
	Write(io.Writer, *time.Location) error
	First() string
}

func (f whyFlags) run(ctx context.Context, out io.Writer, args []string) error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("read --output: %q is not json", f.output)
	}
	a, err := f.reach.connect()
	if err != nil {
		return err
	}
	read, err := f.reader(a, args)
	if err != nil {
		return err
	}
	shown := ""
	for {
		r, err := read(ctx)
		if gone := (*notFoundError)(nil); f.watch && shown != "" && errors.As(err, &gone) {
			_, err := fmt.Fprintln(out, "gone")
			return err
		}
		if err != nil {
			return err
		}
		if first := r.First(); first != shown {
			shown = first
			if err := f.print(out, r); err != nil {
				return err
			}
		}
		if !f.watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.clock.After(watchInterval):
		}
	}
}

// reader returns what reads the report that the arguments ask for.
func (f whyFlags) reader(a *agentAPI, args []string) (func(context.Context) (report, error), error) {
	if args[0] == "node" {
		node := ""
		if len(args) == 2 {
			node = args[1]
		}
		return func(ctx context.Context) (report, error) { return a.whyNode(ctx, node) }, nil
	}
	if len(args) == 2 {
		return nil, fmt.Errorf("read arguments: want one pod, got %q", args)
	}
	namespace, name, found := strings.Cut(args[0], "/")
	if !found {
		namespace, name = f.namespace, args[0]
		if namespace == "" {
			namespace = a.namespace
		}
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("read arguments: %q is neither POD nor NAMESPACE/POD", args[0])
	}
	return func(ctx context.Context) (report, error) { return a.whyPod(ctx, namespace, name) }, nil
}

// print writes a report. With --watch, people see the first line alone.
func (f whyFlags) print(out io.Writer, r report) error {
	switch {
	case f.output == "json":
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("encode report: %w", err)
		}
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	case f.watch:
		var text bytes.Buffer
		if err := r.Write(&text, time.Local); err != nil {
			return err
		}
		first, _, _ := strings.Cut(text.String(), "\n")
		_, err := fmt.Fprintf(out, "%s %s\n", f.clock.Now().Format(time.TimeOnly), first)
		return err
	}
	return r.Write(out, time.Local)
}

var (
	_ report = why.Report{}
	_ report = why.NodeReport{}
)
