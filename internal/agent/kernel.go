package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kernelDefaults are how a node's kernel should behave: promise memory freely, kill rather
// than panic when it runs out, reboot soon after a panic, and hold many keys.
var kernelDefaults = []struct{ name, value string }{
	{"vm/overcommit_memory", "1"},
	{"vm/panic_on_oom", "0"},
	{"kernel/panic", "10"},
	{"kernel/panic_on_oops", "1"},
	{"kernel/keys/root_maxkeys", "1000000"},
	{"kernel/keys/root_maxbytes", "25000000"},
}

// settleKernel makes the kernel a node's, or, where its settings are protected, refuses to
// run on one that is not. A machine without a control plane is somebody's own: it is left
// as it is.
func (a *Agent) settleKernel(context.Context) error {
	protect := a.cfg.Kubelet.ProtectKernelDefaults
	if a.cfg.Flags.Kubeconfig == "" && !protect {
		return nil
	}
	err := kernelSettings("/proc/sys", protect)
	if err != nil && !protect {
		a.log.Warn("the kernel's settings are not those of a node", "err", err)
		return nil
	}
	return err
}

// kernelSettings changes what differs below root, or says so where it must not.
func kernelSettings(root string, protect bool) error {
	var failures []error
	for _, d := range kernelDefaults {
		path := filepath.Join(root, d.name)
		content, err := os.ReadFile(path)
		if err != nil {
			failures = append(failures, fmt.Errorf("read kernel setting: %w", err))
			continue
		}
		actual := strings.TrimSpace(string(content))
		switch {
		case actual == d.value:
		case protect:
			failures = append(failures, fmt.Errorf("invalid kernel flag: %s, expected value: %s, actual value: %s", d.name, d.value, actual))
		default:
			if err := os.WriteFile(path, []byte(d.value), 0o644); err != nil {
				failures = append(failures, fmt.Errorf("change kernel setting: %w", err))
			}
		}
	}
	return errors.Join(failures...)
}
