package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

// shortestWatchdog is what a service manager must allow at least: with less, a moment of
// load would end the agent.
const shortestWatchdog = time.Second

// tellSystemd passes a word on to the service manager, if there is one that listens.
func tellSystemd(word string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	_, err = conn.Write([]byte(word))
	return errors.Join(err, conn.Close())
}

// watchdog tells the service manager again and again that the agent is well. A manager that
// hears nothing for too long starts the agent anew.
type watchdog struct {
	every   time.Duration
	healthy func() error
	tell    func(word string) error
	clock   clock.WithTicker
	log     *slog.Logger
}

// watchdogPeriod reads how long the service manager waits for a sign of life; 0 is that it
// does not. It says so to one process, of which others may have inherited the environment.
func watchdogPeriod(getenv func(string) string, pid int) (time.Duration, error) {
	text := getenv("WATCHDOG_USEC")
	if text == "" {
		return 0, nil
	}
	if of := getenv("WATCHDOG_PID"); of != "" && of != strconv.Itoa(pid) {
		if _, err := strconv.Atoi(of); err != nil {
			return 0, fmt.Errorf("configure watchdog: WATCHDOG_PID is %q, which is not a process", of)
		}
		return 0, nil
	}
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil || micros <= 0 || micros > int64(time.Duration(1<<63-1)/time.Microsecond) {
		return 0, fmt.Errorf("configure watchdog: WATCHDOG_USEC is %q, which is not a time in microseconds", text)
	}
	period := time.Duration(micros) * time.Microsecond
	if period <= shortestWatchdog {
		return 0, fmt.Errorf("configure watchdog: timeout too small: %s; it must be more than %s", period, shortestWatchdog)
	}
	return period, nil
}

// makeWatchdog adds the watchdog where the service manager has asked for one.
func (a *Agent) makeWatchdog(context.Context) error {
	period, err := watchdogPeriod(os.Getenv, os.Getpid())
	if err != nil || period == 0 {
		return err
	}
	w := &watchdog{every: period / 2, healthy: a.pods.loop.Healthy, tell: tellSystemd, clock: a.clock, log: a.log}
	a.edge.parts = append(a.edge.parts, part{"watchdog", w.run})
	return nil
}

func (w *watchdog) run(ctx context.Context) error {
	w.log.Info("the service manager wants signs of life", "every", w.every)
	tick := w.clock.NewTicker(w.every)
	defer tick.Stop()
	for {
		w.sign()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

func (w *watchdog) sign() {
	if err := w.healthy(); err != nil {
		w.log.Error("the service manager gets no sign of life", "err", err)
		return
	}
	if err := w.tell("WATCHDOG=1"); err != nil {
		w.log.Error("sign of life", "err", err)
	}
}
