package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"

	"swiftlet/internal/config"
)

// newLogger returns the configured logger, which the Kubernetes libraries use too, through klog. The
// returned function changes the verbosity of both.
func newLogger(cfg *config.Config, w io.Writer) (*slog.Logger, func(level string) error, error) {
	logging := cfg.Kubelet.Logging
	level, set, flags := newVerbosity()
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if logging.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(handler)
	if err := set(strconv.Itoa(int(logging.Verbosity))); err != nil {
		return nil, nil, err
	}
	if err := flags.Set("vmodule", config.VModule(logging.VModule)); err != nil {
		return nil, nil, fmt.Errorf("set klog's vmodule: %w", err)
	}
	klog.SetSlogLogger(log)
	return log, set, nil
}

// newVerbosity returns the level for a handler and a function that changes it at runtime. klog's V(n)
// is the slog level -n, so one number sets both; slog's Debug is V(4).
func newVerbosity() (level *slog.LevelVar, set func(verbosity string) error, flags *flag.FlagSet) {
	level, flags = &slog.LevelVar{}, &flag.FlagSet{}
	klog.InitFlags(flags)
	return level, func(verbosity string) error {
		n, err := strconv.ParseUint(verbosity, 10, 31)
		if err != nil {
			return err
		}
		if err := flags.Set("v", verbosity); err != nil {
			return fmt.Errorf("failed set klog.logging.verbosity %s: %w", verbosity, err)
		}
		level.Set(-slog.Level(n))
		return nil
	}, flags
}
