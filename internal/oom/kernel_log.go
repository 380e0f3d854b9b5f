package oom

import (
	"fmt"
	"io"
	"log/slog"
	"os"
)

// kernelLog is where the kernel reports which processes it killed.
const kernelLog = "/dev/kmsg"

// LogRules say whether a node may do without the kernel's log.
type LogRules struct {
	// Optional: it may, such as a machine without a control plane.
	Optional bool
	// UserNamespace: the agent runs in one, where the kernel may hide its log.
	UserNamespace bool
	// KubeletInUserNamespace is the feature gate: it may, in a user namespace.
	KubeletInUserNamespace bool
}

// OpenKernelLog opens the kernel's log. It returns nil where the log cannot be read and the
// node may do without.
func OpenKernelLog(rules LogRules, log *slog.Logger) (io.ReadCloser, error) {
	return openKernelLog(kernelLog, rules, log)
}

func openKernelLog(path string, rules LogRules, log *slog.Logger) (io.ReadCloser, error) {
	f, err := os.Open(path)
	switch {
	case err == nil:
		return f, nil
	case rules.Optional, rules.UserNamespace && rules.KubeletInUserNamespace:
		log.Warn("watch for system OOMs: cannot read the kernel's log, OOMs are not reported", "err", err)
		return nil, nil
	case rules.UserNamespace:
		return nil, fmt.Errorf("watch for system OOMs: %w (in a user namespace, the feature gate KubeletInUserNamespace allows to go without)", err)
	}
	return nil, fmt.Errorf("watch for system OOMs: %w", err)
}
