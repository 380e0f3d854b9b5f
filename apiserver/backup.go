package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"swiftlet/apiserver/internal/backup"
)

func newBackupCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Writes the store and the keys of the node to a new file, also while the API server runs",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return backup.Save(command.Context(), f.backup(args[0], command.OutOrStdout()), time.Now())
		},
	}
}

func newRestoreCommand(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Replaces the store and the keys of the node by those of a backup",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return backup.Restore(command.Context(), f.backup(args[0], command.OutOrStdout()))
		},
	}
}

func (f *flags) backup(file string, progress io.Writer) backup.Config {
	return backup.Config{File: file, Data: f.data, PKI: f.pki, Kubernetes: version.Get().GitVersion, Progress: progress}
}
