package server

import (
	"path/filepath"

	"swiftlet/internal/config"
)

// ConfigFrom reads what the node serves, and to whom.
func ConfigFrom(cfg *config.Config, nodeName string) Config {
	f := cfg.Features
	return Config{
		NodeName:        nodeName,
		CertDir:         cfg.Flags.CertDir,
		Kubelet:         &cfg.Kubelet,
		SplitLogStreams: f.PodLogsQuerySplitStreams,
		WebSockets:      f.ExtendWebSocketsToKubelet,
		AllocatedPods:   f.KubeletAllocatedPodsEndpoint,
		Checkpoints:     f.ContainerCheckpoint,
		CheckpointDir:   filepath.Join(cfg.Flags.RootDir, "checkpoints"),
		Statusz:         f.ComponentStatusz,
		Flagz:           f.ComponentFlagz,
		Flags:           cfg.FlagValues,

		CreateForUpgrades: cfg.Flags.CreateForUpgrades,
	}
}
