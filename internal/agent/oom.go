package agent

import "swiftlet/internal/oom"

// makeOOM makes the watcher of system OOMs.
func (a *Agent) makeOOM() error {
	log, err := oom.OpenKernelLog(oom.LogRules{
		Optional:               a.cfg.Flags.Kubeconfig == "",
		UserNamespace:          a.machine.facts.UserNamespace,
		KubeletInUserNamespace: a.cfg.Features.KubeletInUserNamespace,
	}, a.log)
	if log == nil {
		return err
	}
	w, err := oom.New(oom.Config{RootDir: a.cfg.Flags.RootDir, BootID: a.machine.facts.BootID},
		oom.Deps{Kernel: log, Events: a.api.events, Node: a.nodeRef(), Log: a.log})
	if err != nil {
		return err
	}
	a.machine.parts = append(a.machine.parts, part{"OOM watcher", w.Run})
	return nil
}
