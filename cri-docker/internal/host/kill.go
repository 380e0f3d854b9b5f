package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KillTree kills a process and its descendants. stillRuns is asked after the process is pinned, so that
// another process with a reused PID is not killed. A process that is gone is no error.
func KillTree(pid int, stillRuns func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if !stillRuns() {
		return nil
	}
	children := childrenOf(pid)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	for _, child := range children {
		// A child stays until its parent, or init, reaps it, and it has just been read from the kernel.
		if err := KillTree(child, func() bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

func childrenOf(pid int) []int {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none: it has exited
	var children []int
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
