package uml

import (
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// startOnOneCPU starts a program that may use only one of the CPUs of this thread; number chooses
// it. The kernel and the processes of a machine take turns, and on a busy host each turn takes three
// times as long if it changes the CPU.
func startOnOneCPU(cmd *exec.Cmd, number int) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("read CPUs: %w", err)
	}
	cpu := 0
	for skip := number % all.Count(); ; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if skip == 0 {
			break
		}
		skip--
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("choose CPU: %w", err)
	}
	err := cmd.Start()
	if restoreErr := unix.SchedSetaffinity(0, &all); restoreErr != nil && err == nil {
		return fmt.Errorf("restore CPUs: %w", restoreErr)
	}
	return err
}
