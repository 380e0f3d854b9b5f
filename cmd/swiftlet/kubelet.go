package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"swiftlet/internal/agent"
	"swiftlet/internal/config"
)

const kubeletHelp = `Runs the kubelet of a Kubernetes node. It is a drop-in replacement for the reference kubelet,
with the same flags, configuration file, drop-ins and file layout.

Pods come from the API server (--kubeconfig), from files (staticPodPath) and from a URL
(staticPodURL). The *.conf files below --config-dir override the file given by --config, and
flags override both. "swiftlet check" with the same flags prints the result and where each
value comes from. Unknown and duplicate fields of the file, unknown fields of the *.conf files,
and addresses that cannot be parsed in clusterDNS and --node-ip are logged and do not keep the
kubelet from starting; "swiftlet check" reports them as errors.

Three insecure defaults of the reference kubelet, which apply without a configuration file,
are different here: anonymous-auth is false, authorization-mode is Webhook and
read-only-port is 0.
`

func newKubeletCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubelet [flags]",
		Short: "Runs the kubelet of a Kubernetes node",
		// config.LoadLenient parses the flags: once to find the configuration files, and again
		// to override them.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.LoadLenient(args)
			if err != nil {
				return err
			}
			if cfg.Action != config.Run {
				return runAction(cmd, cfg.Action)
			}
			log, setVerbosity, err := newLogger(&cfg.Kubelet.Logging, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			logStart(log, cfg)
			logConfiguration(log, cfg)
			if err := agent.Run(cmd.Context(), cfg, agent.Options{Log: log, SetVerbosity: setVerbosity, Version: ownVersion()}); err != nil {
				log.Error("command failed", "err", err)
				return errLogged
			}
			return nil
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printFlags(cmd.OutOrStdout(), kubeletHelp, cmd.UseLine()) })
	return cmd
}

// logStart logs which kubelet starts, in the first line, and what it noticed in its configuration.
func logStart(log *slog.Logger, cfg *config.Config) {
	log.Info("Kubelet version", "kubeletVersion", config.KubernetesVersion, "swiftletVersion", ownVersion())
	for _, notice := range cfg.Notices {
		log.Warn(notice)
	}
}

// logConfiguration logs what "swiftlet check" prints. It does not keep the kubelet from starting.
func logConfiguration(log *slog.Logger, cfg *config.Config) {
	var text strings.Builder
	if err := cfg.Print(&text); err != nil {
		log.Error("Failed to print effective KubeletConfiguration", "err", err)
		return
	}
	log.Info("Effective KubeletConfiguration", "config", text.String())
}

// runAction runs an action of the command line other than Run.
func runAction(cmd *cobra.Command, action config.Action) error {
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

// printFlags writes the help of a command with the kubelet's flags.
func printFlags(w io.Writer, text, usage string) {
	fmt.Fprintf(w, "%s\nUsage:\n  %s\n%s", text, usage, config.Usage(helpWidth(w)))
}

// helpWidth returns the width of the terminal within limits, or 0 if the output is not a terminal.
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
