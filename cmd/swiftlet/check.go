package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"swiftlet/internal/config"
	"swiftlet/internal/image/credentialplugin"
)

const checkHelp = `Reads a kubelet's flags and the configuration files they name, and starts nothing.

Prints the merged configuration, with the flag or the line of a file that each value came
from; values without a remark are defaults. Prints every error and exits with 1 when
something is wrong.
`

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "check [kubelet flags]",
		Short:              "Tells what a kubelet's flags and configuration files amount to",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(args)
			if err != nil {
				return err
			}
			if cfg.Action != config.Run {
				return answer(cmd, cfg.Action)
			}
			plugins, err := credentialPlugins(cfg)
			if err != nil {
				return err
			}
			if err := cfg.Print(cmd.OutOrStdout()); err != nil {
				return err
			}
			for _, notice := range cfg.Notices {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", notice)
			}
			// The configuration may be meant for another machine, so this is no failure.
			_, missing := plugins.Programs(cfg.Flags.ImageCredentialProviderBinDir)
			if err := errors.Join(cfg.CheckHost(config.ReadHost()), missing); err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: the kubelet would not start on this host:\n%s\n", err)
			}
			return nil
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printFlags(cmd.OutOrStdout(), checkHelp, cmd.UseLine()) })
	return cmd
}

// credentialPlugins reads the files that name them, if there are any.
func credentialPlugins(cfg *config.Config) (credentialplugin.Settings, error) {
	if cfg.Flags.ImageCredentialProviderConfig == "" {
		return credentialplugin.Settings{}, nil
	}
	return credentialplugin.Read(cfg.Flags.ImageCredentialProviderConfig, cfg.Features.KubeletServiceAccountTokenForCredentialProviders)
}
