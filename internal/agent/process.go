package agent

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// settle makes this process one that the kernel spares and that may hold many files. An
// agent that may not do so to itself says it and goes on: its pods matter more.
func (a *Agent) settle(context.Context) error {
	kc := &a.cfg.Kubelet
	score := strconv.Itoa(int(*kc.OOMScoreAdj))
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(score), 0o644); err != nil {
		a.log.Warn("the OOM score of the agent is not set", "score", score, "err", err)
	}
	if err := raiseFiles(uint64(kc.MaxOpenFiles)); err != nil {
		a.log.Warn("the number of open files is not raised", "wanted", kc.MaxOpenFiles, "err", err)
	}
	return nil
}

// raiseFiles lets the process open as many files as wanted, or as many as it may.
func raiseFiles(wanted uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit: %w", err)
	}
	if limit.Cur >= wanted {
		return nil
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: wanted, Max: max(limit.Max, wanted)}); err == nil {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(wanted, limit.Max), Max: limit.Max})
}
