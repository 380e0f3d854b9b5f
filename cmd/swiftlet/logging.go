package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"swiftlet/internal/config"
	"swiftlet/internal/klogfmt"
)

// newLogger returns the configured logger. Libraries use it too: those that log with klog, and those
// that log with the standard library. The returned function changes the verbosity.
func newLogger(cfg *logsapi.LoggingConfiguration, stdout, stderr io.Writer) (*slog.Logger, func(level string) error, error) {
	flags := &flag.FlagSet{}
	klog.InitFlags(flags)
	if err := flags.Set("vmodule", config.VModule(cfg.VModule)); err != nil {
		return nil, nil, fmt.Errorf("set klog's vmodule: %w", err)
	}
	verbosity := klogfmt.NewVerbosity(modules(cfg.VModule)...)
	set := func(level string) error {
		n, err := strconv.ParseUint(level, 10, 31)
		if err != nil {
			return err
		}
		if err := flags.Set("v", level); err != nil {
			return fmt.Errorf("failed set klog.logging.verbosity %s: %w", level, err)
		}
		verbosity.Set(int32(n))
		return nil
	}
	if err := set(strconv.Itoa(int(cfg.Verbosity))); err != nil {
		return nil, nil, err
	}
	handler := newHandler(cfg, verbosity, stdout, stderr)
	redirectKlog(handler, cfg.Format)
	logger := slog.New(handler)
	log.SetFlags(log.Lshortfile) // slog then has the caller, and resets the flags
	slog.SetDefault(logger)
	return logger, set, nil
}

// newHandler writes to stderr. With split streams everything but errors goes to stdout.
func newHandler(cfg *logsapi.LoggingConfiguration, verbosity *klogfmt.Verbosity, stdout, stderr io.Writer) *klogfmt.Handler {
	options := klogfmt.Config{JSON: cfg.Format == logsapi.JSONLogFormat, Verbosity: verbosity, Info: stderr, Error: stderr, Limiter: klogfmt.NewLimiter()}
	split := cfg.Options.Text.SplitStream
	if options.JSON {
		split = cfg.Options.JSON.SplitStream
	}
	if split {
		options.Info = stdout
	}
	return klogfmt.New(options)
}

// redirectKlog makes klog log to the handler. In text, lines that are not structured remain as klog
// formats them.
func redirectKlog(handler *klogfmt.Handler, format string) {
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if format != logsapi.JSONLogFormat {
		options = append(options, klog.WriteKlogBuffer(handler.WriteKlogBuffer))
	}
	klog.SetLoggerWithOptions(logr.FromSlogHandler(omitBodies{handler}), options...)
}

func modules(items []logsapi.VModuleItem) (all []klogfmt.Module) {
	for _, item := range items {
		all = append(all, klogfmt.Module{Pattern: item.FilePattern, Level: int(item.Verbosity)})
	}
	return all
}
