package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"swiftlet/internal/config"
	"swiftlet/internal/image/credentialplugin"
)

const checkHelp = `Validates kubelet flags and the configuration files that they name. It starts nothing.

Prints the merged configuration. A comment names the flag, or the file and line, that each
value comes from; values without a comment are defaults. If the configuration is invalid, it
prints every error and exits with 1.
`

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                "check [kubelet flags]",
		Short:              "Validates kubelet flags and configuration files and prints the merged configuration",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := config.Load(args)
			if err != nil {
				return err
			}
			if cfg.Action != config.Run {
				return runAction(cmd, cfg.Action)
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
			// The configuration may be for another host, so this is not an error.
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

// credentialPlugins reads the configuration of credential provider plugins, if any.
func credentialPlugins(cfg *config.Config) (credentialplugin.Settings, error) {
	if cfg.Flags.ImageCredentialProviderConfig == "" {
		return credentialplugin.Settings{}, nil
	}
	return credentialplugin.Read(cfg.Flags.ImageCredentialProviderConfig, cfg.Features.KubeletServiceAccountTokenForCredentialProviders)
}
