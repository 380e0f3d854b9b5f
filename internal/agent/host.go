package agent

import "swiftlet/internal/host"

// configureHost prepares the process and the kernel for the work of a node. What this process
// may not change is logged: its pods matter more.
func configureHost(b *base) error {
	kc := &b.cfg.Kubelet
	if err := host.SetOOMScoreAdj(*kc.OOMScoreAdj); err != nil {
		b.log.Warn("cannot configure the agent's process", "oomScoreAdj", *kc.OOMScoreAdj, "err", err)
	}
	if err := host.RaiseOpenFiles(uint64(kc.MaxOpenFiles)); err != nil {
		b.log.Warn("cannot configure the agent's process", "maxOpenFiles", kc.MaxOpenFiles, "err", err)
	}
	protect := kc.ProtectKernelDefaults
	if b.cfg.Flags.Kubeconfig == "" && !protect {
		return nil // a machine without a control plane keeps its owner's settings
	}
	err := host.SetKernelSettings(protect)
	if err != nil && !protect {
		b.log.Warn("cannot configure the kernel", "err", err)
		return nil
	}
	return err
}

// newWatchdog adds the watchdog where the service manager asks for one.
func newWatchdog(b *base, healthy func() error) error {
	w, err := host.NewWatchdog(host.WatchdogDeps{Healthy: healthy, Clock: b.clock, Log: b.log})
	if err == nil && w != nil {
		b.add("watchdog", w.Run)
	}
	return err
}
