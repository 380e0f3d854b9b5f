package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kernelSettings are required on a node: overcommit memory, kill a process instead of a panic
// when memory runs out, reboot after a panic, and allow the keys of many containers.
var kernelSettings = []struct{ name, value string }{
	{"vm/overcommit_memory", "1"},
	{"vm/panic_on_oom", "0"},
	{"kernel/panic", "10"},
	{"kernel/panic_on_oops", "1"},
	{"kernel/keys/root_maxkeys", "1000000"},
	{"kernel/keys/root_maxbytes", "25000000"},
}

// CheckKernelSettings returns an error that names the settings that differ, which protectKernelDefaults
// forbids. It changes nothing.
func CheckKernelSettings() error { return setKernelSettings("/proc/sys", true) }

// SetKernelSettings sets the kernel settings. With protect it changes none, and returns an error
// that names those that differ (protectKernelDefaults).
func SetKernelSettings(protect bool) error { return setKernelSettings("/proc/sys", protect) }

func setKernelSettings(root string, protect bool) error {
	var failures []error
	for _, setting := range kernelSettings {
		path := filepath.Join(root, setting.name)
		content, err := os.ReadFile(path)
		if err != nil {
			failures = append(failures, fmt.Errorf("read kernel setting: %w", err))
			continue
		}
		actual := strings.TrimSpace(string(content))
		switch {
		case actual == setting.value:
		case protect:
			failures = append(failures, fmt.Errorf("invalid kernel flag: %s, expected value: %s, actual value: %s", setting.name, setting.value, actual))
		default:
			if err := os.WriteFile(path, []byte(setting.value), 0o644); err != nil {
				failures = append(failures, fmt.Errorf("write kernel setting: %w", err))
			}
		}
	}
	return errors.Join(failures...)
}
