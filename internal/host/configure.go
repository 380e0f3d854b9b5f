package host

import (
	"log/slog"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Configure prepares this process and the kernel for the work of a node. What the process may
// not change is logged: its pods matter more. A standalone machine keeps its owner's kernel
// settings.
func Configure(kc *kubelet.KubeletConfiguration, standalone bool, log *slog.Logger) error {
	if err := SetOOMScoreAdj(*kc.OOMScoreAdj); err != nil {
		log.Warn("host: cannot configure the agent's process", "oomScoreAdj", *kc.OOMScoreAdj, "err", err)
	}
	if err := RaiseOpenFiles(uint64(kc.MaxOpenFiles)); err != nil {
		log.Warn("host: cannot configure the agent's process", "maxOpenFiles", kc.MaxOpenFiles, "err", err)
	}
	if standalone && !kc.ProtectKernelDefaults {
		return nil
	}
	err := SetKernelSettings(kc.ProtectKernelDefaults)
	if err != nil && !kc.ProtectKernelDefaults {
		log.Warn("host: cannot configure the kernel", "err", err)
		return nil
	}
	return err
}
