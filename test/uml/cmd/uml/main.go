// Command uml runs a program on a machine of its own with cgroup v2. It exits with the
// program's code: go test -exec bin/uml ./internal/cgroup
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"swiftlet/test/uml"
)

func main() {
	m := uml.Machine{Env: os.Environ(), Out: os.Stdout}
	flag.IntVar(&m.MemoryMiB, "memory", 1024, "the machine's memory in MiB")
	flag.IntVar(&m.SwapMiB, "swap", 0, "the machine's swap in MiB")
	flag.BoolVar(&m.Systemd, "systemd", false, "systemd is the machine's first process")
	deadline := flag.Duration("deadline", 5*time.Minute, "when to end the machine at the latest")
	flag.Parse()
	m.Command = flag.Args()
	code, err := run(m, *deadline)
	if err != nil {
		fmt.Fprintln(os.Stderr, "uml:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m uml.Machine, deadline time.Duration) (code int, err error) {
	if len(m.Command) == 0 {
		return 0, fmt.Errorf("usage: uml [flags] COMMAND [ARGUMENT…]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("its %s are over", deadline))
	defer cancel()
	if m.Dir, err = os.Getwd(); err != nil {
		return 0, err
	}
	return uml.Run(ctx, m)
}
