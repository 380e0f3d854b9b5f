package bed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// shared are the kernel settings that a kubelet changes at its start and that no namespace
// keeps to itself.
var shared = []string{
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/vm/panic_on_oom",
	"/proc/sys/kernel/panic",
	"/proc/sys/kernel/panic_on_oops",
	"/proc/sys/kernel/keys/root_maxkeys",
	"/proc/sys/kernel/keys/root_maxbytes",
}

// kernelSettings are values to put back.
type kernelSettings map[string][]byte

func readKernelSettings() (kernelSettings, error) {
	settings := kernelSettings{}
	for _, file := range shared {
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
