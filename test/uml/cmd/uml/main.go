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
	memory := flag.Int("memory", 1024, "the machine's memory in MiB")
	swap := flag.Int("swap", 0, "the machine's swap in MiB")
	deadline := flag.Duration("deadline", 5*time.Minute, "when to end the machine at the latest")
	flag.Parse()
	code, err := run(*memory, *swap, *deadline, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "uml:", err)
		code = 1
	}
	os.Exit(code)
}

func run(memory, swap int, deadline time.Duration, command []string) (int, error) {
	if len(command) == 0 {
		return 0, fmt.Errorf("usage: uml [flags] COMMAND [ARGUMENT…]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("its %s are over", deadline))
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	return uml.Run(ctx, uml.Machine{
		Command: command, Dir: dir, Env: os.Environ(), MemoryMiB: memory, SwapMiB: swap, Out: os.Stdout,
	})
}
