package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// tellSystemd says that the agent is up to a service manager that waits for it.
func tellSystemd() error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	_, err = conn.Write([]byte("READY=1"))
	return errors.Join(err, conn.Close())
}
