package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/standalone"
)

func newImageCommand() *cobra.Command {
	command := &cobra.Command{Use: "image", Short: "Loads, lists and removes images of the node of \"swiftlet up\""}
	command.AddCommand(
		imageCommand("load FILE...", "Loads archives of images, as docker save or an OCI tool writes them", cobra.MinimumNArgs(1),
			func(ctx context.Context, cfg standalone.Config, deps standalone.Deps, store standalone.ImageStore, args []string) error {
				for i := range args {
					file, err := filepath.Abs(args[i])
					if err != nil {
						return err
					}
					args[i] = file
				}
				return standalone.LoadImages(ctx, cfg, deps, store, args)
			}),
		imageCommand("list", "Lists the images of the node", cobra.NoArgs,
			func(ctx context.Context, cfg standalone.Config, deps standalone.Deps, store standalone.ImageStore, _ []string) error {
				return standalone.ListImages(ctx, cfg, deps, store)
			}),
		imageCommand("rm IMAGE...", "Removes images from the node", cobra.MinimumNArgs(1), standalone.RemoveImages),
	)
	return command
}

func imageCommand(use, short string, args cobra.PositionalArgs,
	do func(context.Context, standalone.Config, standalone.Deps, standalone.ImageStore, []string) error,
) *cobra.Command {
	var f upFlags
	command := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(command *cobra.Command, args []string) error {
			command.SilenceUsage = true
			return f.withRuntime(func(cfg standalone.Config, client *cri.Client) error {
				return do(command.Context(), cfg, standalone.Deps{Clock: clock.RealClock{}, Out: command.OutOrStdout()}, client, args)
			})
		},
	}
	f.addPlaces(command.Flags())
	command.Flags().BoolVar(&f.verifyBundle, "verify-bundle", true, "run only the programs that this executable was built with, which it knows by their SHA-256")
	return command
}
