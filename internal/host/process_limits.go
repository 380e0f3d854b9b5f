package host

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetOOMScoreAdj sets how readily the kernel kills this process when memory runs out.
func SetOOMScoreAdj(score int32) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(score))), 0o644); err != nil {
		return fmt.Errorf("set OOM score adjustment: %w", err)
	}
	return nil
}

// RaiseOpenFiles raises the limit of open files to wanted, or as far as this process may.
func RaiseOpenFiles(wanted uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read limit of open files: %w", err)
	}
	if limit.Cur >= wanted {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: wanted, Max: max(limit.Max, wanted)}); err == nil {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(wanted, limit.Max), Max: limit.Max}); err != nil {
		return fmt.Errorf("raise limit of open files: %w", err)
	}
	return nil
}
