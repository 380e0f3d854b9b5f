package credentialplugin

import "swiftlet/internal/config"

// ConfigFrom reads where the credential provider plugins are; false where there are none.
func ConfigFrom(cfg *config.Config) (Config, bool) {
	flags := &cfg.Flags
	return Config{
		File:   flags.ImageCredentialProviderConfig,
		Dir:    flags.ImageCredentialProviderBinDir,
		Tokens: cfg.Features.KubeletServiceAccountTokenForCredentialProviders,
	}, flags.ImageCredentialProviderConfig != ""
}
