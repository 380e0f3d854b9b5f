package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"swiftlet/internal/config"
)

// newLogger makes the process's logger as the configuration wants it, and makes the
// Kubernetes libraries, which log with klog, use it too.
func newLogger(cfg *config.Config, w io.Writer) (*slog.Logger, error) {
	logging := cfg.Kubelet.Logging
	// klog's V(n) becomes the slog level -n, so one number rules both; slog's own Debug
	// is V(4).
	options := &slog.HandlerOptions{Level: slog.Level(-int(logging.Verbosity))}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if logging.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(handler)

	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", fmt.Sprint(uint32(logging.Verbosity))); err != nil {
		return nil, fmt.Errorf("set klog's verbosity: %w", err)
	}
	if err := flags.Set("vmodule", config.VModule(logging.VModule)); err != nil {
		return nil, fmt.Errorf("set klog's vmodule: %w", err)
	}
	klog.SetSlogLogger(log)
	return log, nil
}
