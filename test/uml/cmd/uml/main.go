// Command uml runs a program on a virtual machine with cgroup v2 and exits with the program's code:
// go test -exec bin/uml ./internal/cgroup
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
	flag.IntVar(&m.MemoryMiB, "memory", 1024, "memory in MiB")
	flag.IntVar(&m.SwapMiB, "swap", 0, "swap in MiB")
	flag.BoolVar(&m.Systemd, "systemd", false, "run systemd as PID 1")
	deadline := flag.Duration("deadline", 5*time.Minute, "kill the machine after this time")
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
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("deadline of %s exceeded", deadline))
	defer cancel()
	if m.Dir, err = os.Getwd(); err != nil {
		return 0, err
	}
	return uml.Run(ctx, m)
}
