package main

import (
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/standalone"
)

func newDownCommand() *cobra.Command {
	var f upFlags
	command := &cobra.Command{
		Use:   "down",
		Short: "Stops what \"swiftlet up\" runs, or has left running with --keep",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.SilenceUsage = true
			log := slog.New(slog.NewTextHandler(command.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			return f.withRuntime(func(cfg standalone.Config, client *cri.Client) error {
				return standalone.Down(command.Context(), cfg, standalone.Deps{Log: log, Clock: clock.RealClock{}, Runtime: client, Out: os.Stdout})
			})
		},
	}
	f.addPlaces(command.Flags())
	return command
}

// withRuntime calls do with the configuration and a client of its runtime, which need not run.
func (f *upFlags) withRuntime(do func(standalone.Config, *cri.Client) error) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: cfg.Paths.Socket(), RequestTimeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	defer client.Close()
	return do(cfg, client)
}
