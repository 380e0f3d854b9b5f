package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		pods     = flag.String("pods", "10,100,1000", "numbers of pods to measure, ascending")
		single   = flag.Int("single", 20, "pods that are started and ended one after the other at each number")
		idle     = flag.Duration("idle", time.Minute, "length of the idle phase at each number")
		profiles = flag.String("profiles", "", "directory for CPU and heap profiles")
		page     = flag.Bool("page", false, "enable the page, and measure an idle node also while it is open")
		agent    = flag.String("agent", "", "run the agent whose files are in this directory, for this command itself")
	)
	flag.Parse()
	if *agent != "" {
		return runAgent(ctx, *agent, *page, os.Stdin, os.Stdout)
	}
	numbers, err := parseNumbers(*pods)
	if err != nil {
		return err
	}
	if err := checkPhases(*single, *idle); err != nil {
		return err
	}
	n, err := startNode(ctx, *profiles, *page)
	if err != nil {
		return err
	}
	defer n.close()
	fmt.Println(header)
	for _, number := range numbers {
		row, err := n.measure(ctx, number, *single, *idle)
		if err != nil {
			return fmt.Errorf("%d pods: %w", number, err)
		}
		fmt.Println(row)
	}
	return nil
}

// checkPhases rejects what costs cannot be divided by.
func checkPhases(single int, idle time.Duration) error {
	if single < 1 {
		return fmt.Errorf("-single is %d, want at least 1", single)
	}
	if idle <= 0 {
		return fmt.Errorf("-idle is %v, want more than 0", idle)
	}
	return nil
}

func parseNumbers(list string) ([]int, error) {
	var all []int
	for _, text := range strings.Split(list, ",") {
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("read -pods: %w", err)
		}
		all = append(all, number)
	}
	return all, nil
}
