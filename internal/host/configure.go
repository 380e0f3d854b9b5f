package host

import (
	"log/slog"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// Configure sets the process limits and kernel settings of a node. It logs what it is not
// permitted to set; only protectKernelDefaults makes that an error. A standalone machine keeps
// its kernel settings.
func Configure(kc *kubelet.KubeletConfiguration, standalone bool, log *slog.Logger) error {
	if err := SetOOMScoreAdj(*kc.OOMScoreAdj); err != nil {
		log.Warn("host: set OOM score adjustment failed", "oomScoreAdj", *kc.OOMScoreAdj, "err", err)
	}
	if err := RaiseOpenFiles(uint64(kc.MaxOpenFiles)); err != nil {
		log.Warn("host: raise limit of open files failed", "maxOpenFiles", kc.MaxOpenFiles, "err", err)
	}
	if standalone && !kc.ProtectKernelDefaults {
		return nil
	}
	err := SetKernelSettings(kc.ProtectKernelDefaults)
	if err != nil && !kc.ProtectKernelDefaults {
		log.Warn("host: set kernel settings failed", "err", err)
		return nil
	}
	return err
}
