package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"swiftlet/internal/agent"
	"swiftlet/internal/config"
)

const kubeletHelp = `Runs the agent of a Kubernetes node, in place of the reference kubelet: it takes the same
flags, configuration file and drop-ins, and keeps its files in the same places.

Pods come from the API server (--kubeconfig), from files (staticPodPath) and from a URL
(staticPodURL). Settings come from the file given by --config, then from the *.conf files
below --config-dir, then from flags; the later ones win. "swiftlet check" with the same
flags prints the result and where each value came from.

Three of the reference's defaults, which open a node that has no configuration file to
anyone, are closed here: anonymous-auth is false, authorization-mode is Webhook and
read-only-port is 0.
`

func newKubeletCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubelet [flags]",
		Short: "Runs the agent of a Kubernetes node",
		// The configuration package reads the flags: it has to read them twice, around
		// the files that they name.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(args)
			if err != nil {
				return err
			}
			if cfg.Action != config.Run {
				return answer(cmd, cfg.Action)
			}
			if err := cfg.CheckHost(config.ReadHost()); err != nil {
				return err
			}
			log, setVerbosity, err := newLogger(cfg, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, notice := range cfg.Notices {
				log.Warn(notice)
			}
			return agent.Run(cmd.Context(), cfg, agent.Options{Log: log, SetVerbosity: setVerbosity})
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printFlags(cmd.OutOrStdout(), kubeletHelp, cmd.UseLine()) })
	return cmd
}

// answer does what a command line asks for instead of running.
func answer(cmd *cobra.Command, action config.Action) error {
	switch action {
	case config.Version:
		fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", config.KubernetesVersion)
	case config.VersionRaw:
		fmt.Fprint(cmd.OutOrStdout(), buildDescription())
	default:
		return cmd.Help()
	}
	return nil
}

// printFlags writes the help of a command that takes the kubelet's flags.
func printFlags(w io.Writer, text, usage string) {
	fmt.Fprintf(w, "%s\nUsage:\n  %s\n%s", text, usage, config.Usage(helpWidth(w)))
}

// helpWidth is the terminal's width within reason, and none when the help goes elsewhere.
func helpWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return min(max(width, 60), 140)
}
