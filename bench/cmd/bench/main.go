// Command bench measures bare CRI calls, the reference kubelet and Swiftlet in one run. Ctrl-C ends the
// run; what was measured until then is kept.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"swiftlet/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		rows    = flag.String("rows", ".", "regular expression: run the experiments that measure a row whose ID matches; -list shows the IDs")
		rounds  = flag.Int("rounds", 0, "number of rounds (default 3, or 1 with -quick)")
		out     = flag.String("out", "bench/results", "directory of the results")
		program = flag.String("program", "bin/swiftlet", "the Swiftlet to measure, stripped")
		limit   = flag.Duration("limit", 44*time.Minute, "begin no experiment that would end later; 0: no limit")
		quick   = flag.Bool("quick", false, "only the short experiments, with fewer repetitions")
		smoke   = flag.Bool("smoke", false, "every experiment once with few pods: shows that it works, its figures mean nothing")
		publish = flag.Bool("publish", false, "write tables and charts to README.md and docs/")
		from    = flag.String("from", "", "measure nothing; use this result instead")
		list    = flag.Bool("list", false, "list the experiments and their rows")
	)
	flag.Parse()
	if *list {
		bench.List(os.Stdout)
		return nil
	}
	result, err := measured(ctx, *from, *out, bench.Config{Program: *program, Rounds: roundsOf(*rounds, *quick || *smoke), Limit: *limit, Quick: *quick, Smoke: *smoke}, *rows)
	if result == nil {
		return err
	}
	fmt.Printf("\n%s\n%s\n", result.Markdown(false), result.Caption())
	if *publish && err == nil && !*smoke {
		err = result.Publish(".")
	}
	return err
}

func roundsOf(flag int, quick bool) int {
	switch {
	case flag > 0:
		return flag
	case quick:
		return 1
	default:
		return 3
	}
}

// measured runs the experiments, or reads an earlier result.
func measured(ctx context.Context, from, out string, config bench.Config, rows string) (*bench.Result, error) {
	if from != "" {
		return bench.ReadJSON(from)
	}
	var err error
	if config.Rows, err = regexp.Compile(rows); err != nil {
		return nil, fmt.Errorf("parse -rows: %w", err)
	}
	file := ""
	save := func(r *bench.Result) (err error) { file, err = r.WriteJSON(out); return err }
	result, err := bench.Run(ctx, config, os.Stderr, save)
	if result != nil {
		err = errors.Join(err, save(result))
		fmt.Fprintln(os.Stderr, "bench: wrote", file)
	}
	return result, err
}
