// Command hollow runs the agents of nodes with a simulated runtime each, for test/scale. A line "restart" on
// its standard input restarts all agents at once.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"swiftlet/internal/host"
	"swiftlet/test/scale/hollow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		dir    = flag.String("dir", "", "directory with one directory of files for each node")
		nodes  = flag.String("nodes", "", "names of the nodes, separated by commas")
		pause  = flag.Duration("pause", 20*time.Millisecond, "time between the starts of two agents")
		events = flag.Bool("events", true, "send events")
	)
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var configs []hollow.Config
	for _, name := range strings.Split(*nodes, ",") {
		configs = append(configs, hollow.Config{Name: name, Dir: filepath.Join(*dir, name), DropEvents: !*events, Log: log.With("node", name)})
	}
	if len(configs) == 1 { // a process of its own, as on a real node
		configs[0].Memory = &host.ProcessMemory{}
	}
	fleet, err := hollow.NewFleet(configs)
	if err != nil {
		return err
	}
	defer fleet.Close()
	return fleet.Run(ctx, *pause, restarts(os.Stdin))
}

// restarts sends a value for each line "restart".
func restarts(input io.Reader) <-chan struct{} {
	requests := make(chan struct{})
	go func() { // ends with the process
		for lines := bufio.NewScanner(input); lines.Scan(); {
			if lines.Text() == "restart" {
				requests <- struct{}{}
			}
		}
	}()
	return requests
}
