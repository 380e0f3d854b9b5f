package bed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// hostKernelSettings are the sysctls that a kubelet sets at its start and that are not namespaced.
var hostKernelSettings = []string{
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/panic",
	"/proc/sys/kernel/panic_on_oops",
	"/proc/sys/kernel/keys/root_maxkeys",
	"/proc/sys/kernel/keys/root_maxbytes",
}

// kernelSettings are the values to restore, by file.
type kernelSettings map[string][]byte

func readKernelSettings() (kernelSettings, error) {
	settings := kernelSettings{}
	for _, file := range hostKernelSettings {
		value, err := readFile(file)
		if err != nil {
			return nil, err
		}
		settings[file] = value
	}
	return settings, nil
}

func (k kernelSettings) restore() error {
	var errs []error
	for file, value := range k {
		if now, err := os.ReadFile(file); err == nil && bytes.Equal(now, value) {
			continue
		}
		if err := os.WriteFile(file, value, 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restore kernel setting: %w", err))
		}
	}
	return errors.Join(errs...)
}
