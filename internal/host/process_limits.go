package host

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SetOOMScoreAdj sets the OOM score adjustment of this process.
func SetOOMScoreAdj(score int32) error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(score))), 0o644); err != nil {
		return fmt.Errorf("set OOM score adjustment: %w", err)
	}
	return nil
}

// RaiseOpenFiles raises the limit of open files to limit, or as far as permitted.
func RaiseOpenFiles(limit uint64) error {
	var current unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &current); err != nil {
		return fmt.Errorf("read limit of open files: %w", err)
	}
	if current.Cur >= limit {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: max(current.Max, limit)}); err == nil {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(limit, current.Max), Max: current.Max}); err != nil {
		return fmt.Errorf("raise limit of open files: %w", err)
	}
	return nil
}
