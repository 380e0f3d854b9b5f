package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"swiftlet/internal/config"
	"swiftlet/internal/preflight"
	"swiftlet/internal/swap"
)

const checkHelp = `Finds out whether a kubelet with these flags would start on this host. It starts nothing and
changes nothing.

Prints the merged configuration. A comment names the flag, or the file and line, that each
value comes from; values without a comment are defaults. If the configuration is invalid, or
the kubelet would not start on this host, it prints every error and exits with 1. A kubelet
that runs on this host may keep its ports: it is expected to end first.

  --config-only   checks the flags and files alone, for example for another host
  --live          compares with the kubelet that runs on this host: lists the settings, state
                  files and pods that would change if Swiftlet replaced it, instead of the
                  configuration. Without kubelet flags, it uses those of the running kubelet.
                  Exits with 1 if a container would be restarted or state would be lost.
`

// checkFlags are the flags of the check itself. All others are the kubelet's.
type checkFlags struct{ configOnly, live bool }

// take removes the flags of the check from a command line.
func (f *checkFlags) take(args []string) (kubelet []string) {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		switch arg {
		case "--config-only":
			f.configOnly = true
		case "--live":
			f.live = true
		default:
			return false
		}
		return true
	})
}

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "check [--config-only | --live] [kubelet flags]",
		Short:              "Finds out whether a kubelet would start, and prints its configuration",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var flags checkFlags
			args = flags.take(args)
			if flags.live {
				return checkLive(cmd, args)
			}
			return check(cmd, args, flags.configOnly)
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printFlags(cmd.OutOrStdout(), checkHelp, cmd.UseLine()) })
	return cmd
}

func check(cmd *cobra.Command, args []string, configOnly bool) error {
	cfg, err := config.Load(args)
	if err != nil {
		return err
	}
	if cfg.Action != config.Run {
		return runAction(cmd, cfg.Action)
	}
	if err := cfg.Print(cmd.OutOrStdout()); err != nil {
		return err
	}
	for _, notice := range cfg.Notices {
		fmt.Fprintln(cmd.ErrOrStderr(), "note:", notice)
	}
	// If it cannot be found, its ports are reported as in use.
	running, _ := swap.Find()
	return preflight.Run(cfg, preflight.Options{ConfigOnly: configOnly, Replaced: running.PID})
}

// checkLive compares with the kubelet that runs.
func checkLive(cmd *cobra.Command, args []string) error {
	running, err := swap.Find()
	if err != nil {
		return fmt.Errorf("check --live: %w", err)
	}
	if len(args) == 0 {
		args = running.Args
	}
	cfg, err := config.LoadLenient(args)
	if err != nil {
		return err
	}
	if cfg.Action != config.Run {
		return runAction(cmd, cfg.Action)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "running kubelet: PID %d, started at %s\n", running.PID, running.Started.Format("2006-01-02 15:04:05"))
	report := swap.Compare(cmd.Context(), cfg, running)
	report.Print(cmd.OutOrStdout())
	return errors.Join(preflight.Run(cfg, preflight.Options{Replaced: running.PID}), report.Err())
}
