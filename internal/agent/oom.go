package agent

import (
	"fmt"
	"os"

	"swiftlet/internal/oom"
)

// kernelLog is where the kernel tells whom it killed.
const kernelLog = "/dev/kmsg"

// makeOOM makes what tells of system OOMs.
func (a *Agent) makeOOM() error {
	log, err := a.openKernelLog(kernelLog)
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

// openKernelLog gives nil where the node goes without. One of a cluster may do so only in a
// user namespace, where the kernel may hide its log, and if it is told so. A machine of
// somebody's own may anywhere.
func (a *Agent) openKernelLog(path string) (*os.File, error) {
	log, err := os.Open(path)
	inNamespace := a.machine.facts.UserNamespace
	switch {
	case err == nil:
		return log, nil
	case a.cfg.Flags.Kubeconfig == "", inNamespace && a.cfg.Features.KubeletInUserNamespace:
		a.log.Warn("system OOMs will not be noticed: the kernel's log cannot be read", "err", err)
		return nil, nil
	case inNamespace:
		return nil, fmt.Errorf("watch for system OOMs: %w (in a user namespace, the feature gate KubeletInUserNamespace allows to go without)", err)
	}
	return nil, fmt.Errorf("watch for system OOMs: %w", err)
}
