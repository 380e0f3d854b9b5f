package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"swiftlet/internal/host"
	"swiftlet/test/scale/hollow"
)

// nodeName is an address, so that it is not looked up.
const nodeName = "10.211.0.1"

// use is what the agent's process has used.
type use struct {
	CPU         time.Duration // with the kernel's share
	Anonymous   int64         // resident, in bytes
	File        int64         // resident, in bytes: the executable
	Heap        uint64        // bytes of objects
	Stacks      uint64        // bytes
	Goroutines  uint64
	Allocations uint64 // objects, since the start
}

// runAgent runs the agent until ctx is done, and answers commands, a line each:
//
//	use        what the process has used
//	collect    the same, after a garbage collection
//	profile F  starts a CPU profile, which ends with the next command "profile"
//	heap F     writes a heap profile
func runAgent(ctx context.Context, dir string, page bool, input io.Reader, output io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with the process
		lines := bufio.NewScanner(input)
		for lines.Scan() {
			answer, err := command(lines.Text())
			if err != nil {
				fmt.Fprintln(os.Stderr, "growth:", err)
				break
			}
			fmt.Fprintln(output, answer)
		}
		stop()
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return hollow.Attach(hollow.Config{Name: nodeName, Dir: dir, Page: page, Memory: &host.ProcessMemory{}, Log: log}).Run(ctx)
}

func command(line string) (answer string, err error) {
	name, path, _ := strings.Cut(line, " ")
	switch name {
	case "collect":
		for range 8 { // a collection halves the stack of a waiting goroutine, down to 2 KB
			runtime.GC()
		}
	case "heap":
		err = writeHeap(path)
	case "profile":
		err = switchProfile(path)
	}
	if err != nil {
		return "", err
	}
	now, err := readUse()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(now)
	return string(text), err
}

func writeHeap(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return pprof.Lookup("heap").WriteTo(file, 0)
}

// switchProfile ends the current CPU profile, and starts another one if there is a path.
func switchProfile(path string) error {
	pprof.StopCPUProfile()
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return pprof.StartCPUProfile(file)
}

func readUse() (now use, err error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return now, fmt.Errorf("read CPU time: %w", err)
	}
	now.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/allocs:objects"},
	}
	metrics.Read(samples)
	for i, value := range []*uint64{&now.Heap, &now.Stacks, &now.Goroutines, &now.Allocations} {
		*value = samples[i].Value.Uint64()
	}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return now, err
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &now.Anonymous)
		_, _ = fmt.Sscanf(line, "RssFile: %d kB", &now.File)
	}
	if now.Anonymous == 0 || now.File == 0 {
		return now, fmt.Errorf("no RssAnon or RssFile in /proc/self/status")
	}
	now.Anonymous, now.File = now.Anonymous<<10, now.File<<10
	return now, nil
}
