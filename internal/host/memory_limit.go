package host

import (
	"log/slog"
	"os"
	"runtime/debug"
)

// LimitMemory makes the garbage collector keep this process below nine tenths of the memory limit of its
// cgroup, so that a peak costs CPU time before the kernel kills the process. read returns the limit, zero for
// none. The environment variable GOMEMLIMIT comes first.
func LimitMemory(read func() (limit uint64, err error), log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, err := read()
	if err != nil {
		log.Warn("host: set memory limit of this process failed", "err", err)
	}
	if limit == 0 {
		return
	}
	soft := int64(limit / 10 * 9)
	debug.SetMemoryLimit(soft)
	log.Info("host: set memory limit of this process", "cgroupLimit", limit, "softLimit", soft)
}
