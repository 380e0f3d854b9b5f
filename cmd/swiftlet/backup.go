package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"swiftlet/internal/standalone"
)

const backupHelp = `Writes the objects of the node of "swiftlet up --api" and its keys to a new file, which only root can
read. The node may run. The file has a consistent state of all objects, and checksums; an existing file is not
replaced.`

const restoreHelp = `Replaces the objects of the node of "swiftlet up --api" and its keys by those of a backup. The node must
not run. What is replaced stays in place until the backup has been checked and opened. Clients that watch the
node list its objects again; pods follow when it starts.`

func newBackupCommand() *cobra.Command {
	return storeCommand("backup", "Writes the objects of the node of \"swiftlet up --api\" to a file", backupHelp, standalone.Backup)
}

func newRestoreCommand() *cobra.Command {
	return storeCommand("restore", "Replaces the objects of the node of \"swiftlet up --api\" by those of a backup", restoreHelp, standalone.Restore)
}

func storeCommand(name, short, long string, do func(context.Context, standalone.Config, standalone.Deps, string) error) *cobra.Command {
	f := upFlags{api: true, apiPort: 6443}
	command := &cobra.Command{
		Use:   name + " FILE",
		Short: short,
		Long:  long,
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			command.SilenceUsage = true
			cfg, err := f.config()
			if err != nil {
				return err
			}
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(command.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			return do(command.Context(), cfg, standalone.Deps{Log: log, Clock: clock.RealClock{}, Out: command.OutOrStdout()}, file)
		},
	}
	f.addPlaces(command.Flags())
	f.addAPIBundle(command.Flags())
	return command
}
