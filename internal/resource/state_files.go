package resource

import (
	"errors"
	"path/filepath"

	"swiftlet/internal/resource/allocation"
	"swiftlet/internal/resource/cpu"
	"swiftlet/internal/resource/device"
	"swiftlet/internal/resource/device/checkpoint"
	"swiftlet/internal/resource/dra"
	"swiftlet/internal/resource/memory"
	"swiftlet/internal/resource/statefile"
)

// StateFile is a file with allocations that an earlier kubelet, ours or the reference, has left.
type StateFile struct {
	Name string // below the root directory
	// check returns an error if the file exists and cannot be used. It changes nothing.
	check func(path string) error
	// IfDamaged says what the kubelet does if the content is not valid. It is empty if it does not start.
	IfDamaged string
}

// StateFiles are all state files.
var StateFiles = []StateFile{
	{"cpu_manager_state", cpu.CheckStateFile, "it is kept as *.bad, and the exclusive CPUs of running containers are found again"},
	{"memory_manager_state", memory.CheckStateFile, "it is kept as *.bad, and pods are allocated memory again"},
	{"device-plugins/kubelet_internal_checkpoint", device.CheckCheckpoint, "it is kept as *.bad, and pods are allocated devices again"},
	{"dra_manager_state", dra.CheckCheckpoint, "it is kept as *.bad, and resource claims are prepared again"},
	{allocation.Allocated, allocation.Check, "it is kept as *.bad, and the resources of running pods are found in their status"},
	{allocation.Actuated, allocation.Check, "it is kept as *.bad, and the resources of running pods are applied again"},
}

// Check returns an error if the file exists below the root directory and cannot be used. It changes nothing.
func (f StateFile) Check(rootDir string) error { return f.check(filepath.Join(rootDir, f.Name)) }

// IsDamaged reports whether the error of Check is about the content of a file, not about reading it.
func IsDamaged(err error) bool {
	for _, damaged := range []error{statefile.ErrCorrupt, checkpoint.ErrInvalid, checkpoint.ErrChecksum, dra.ErrCorrupt} {
		if errors.Is(err, damaged) {
			return true
		}
	}
	return false
}
