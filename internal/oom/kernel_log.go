package oom

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"swiftlet/internal/config"
)

// kernelLog is the device with the messages of the OOM killer.
const kernelLog = "/dev/kmsg"

// LogRules say whether the node may run without access to the kernel log.
type LogRules struct {
	// Optional: it may, for instance without a control plane.
	Optional bool
	// UserNamespace: the kubelet runs in one, where the kernel may deny access.
	UserNamespace bool
	// KubeletInUserNamespace is the feature gate: with it, it may in a user namespace.
	KubeletInUserNamespace bool
}

// RulesFrom reads the rules of the configuration. userNamespace: the kubelet runs in one.
func RulesFrom(cfg *config.Config, userNamespace bool) LogRules {
	return LogRules{
		Optional:      cfg.Flags.Kubeconfig == "",
		UserNamespace: userNamespace, KubeletInUserNamespace: cfg.Features.KubeletInUserNamespace,
	}
}

// OpenKernelLog opens the kernel log. It returns nil if the log cannot be opened and the rules
// allow that.
func OpenKernelLog(rules LogRules, log *slog.Logger) (io.ReadCloser, error) {
	return openKernelLog(kernelLog, rules, log)
}

func openKernelLog(path string, rules LogRules, log *slog.Logger) (io.ReadCloser, error) {
	f, err := os.Open(path)
	switch {
	case err == nil:
		return f, nil
	case rules.Optional, rules.UserNamespace && rules.KubeletInUserNamespace:
		log.Warn("oom: cannot open kernel log, system OOMs will not be reported", "err", err)
		return nil, nil
	case rules.UserNamespace:
		return nil, fmt.Errorf("watch for system OOMs: %w (in a user namespace, the feature gate KubeletInUserNamespace allows to go without)", err)
	}
	return nil, fmt.Errorf("watch for system OOMs: %w", err)
}
