// Cri-docker serves the Container Runtime Interface v1 with Docker Engine. docs/docker.md is for its users.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"
)

// version is set by the linker.
var version = "unknown"

// options are the flags.
type options struct {
	listen, docker, pauseImage, stateDir, streamAddress string
	cniConfDir, cniCacheDir                             string
	cniBinDirs                                          []string
	logLevel                                            slog.Level
	showVersion                                         bool
}

func parseFlags(args []string) (options, error) {
	var o options
	f := pflag.NewFlagSet("cri-docker", pflag.ContinueOnError)
	f.StringVar(&o.listen, "listen", "unix:///run/cri-docker.sock", "socket of the CRI")
	f.StringVar(&o.docker, "docker-endpoint", "unix:///var/run/docker.sock", "address of Docker Engine")
	f.StringVar(&o.pauseImage, "pause-image", "registry.k8s.io/pause:3.10", "image of sandboxes; pulled without credentials if it is missing")
	f.StringVar(&o.stateDir, "state-dir", "/var/lib/cri-docker", "directory of log positions")
	f.StringVar(&o.streamAddress, "stream-address", "127.0.0.1:0", "address of exec, attach and port-forward streams")
	f.StringVar(&o.cniConfDir, "cni-conf-dir", "/etc/cni/net.d", "directory of CNI configurations; the first one is used")
	f.StringVar(&o.cniCacheDir, "cni-cache-dir", "/var/lib/cri-docker/cni", "directory of CNI results, for this program only")
	f.StringSliceVar(&o.cniBinDirs, "cni-bin-dir", []string{"/opt/cni/bin"}, "directories of CNI plugins")
	level := f.String("log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.showVersion, "version", false, "print the version")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err := o.logLevel.UnmarshalText([]byte(*level)); err != nil {
		return o, fmt.Errorf("--log-level: %w", err)
	}
	path, err := socketPath(o.listen)
	if err != nil {
		return o, fmt.Errorf("--listen: %w", err)
	}
	o.listen = path
	return o, nil
}

// maxSocket is what the kernel accepts as the path of a socket.
const maxSocket = 107

func socketPath(address string) (string, error) {
	const scheme = "unix://"
	path := address
	if len(address) > len(scheme) && address[:len(scheme)] == scheme {
		path = address[len(scheme):]
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not the path of a socket, such as unix:///run/cri-docker.sock", address)
	}
	if len(path) > maxSocket {
		return "", fmt.Errorf("%q is longer than %d characters", path, maxSocket)
	}
	return path, nil
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cri-docker:", err)
		os.Exit(2)
	}
	if o.showVersion {
		fmt.Println("cri-docker", version)
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, log); err != nil {
		log.Error("cri-docker failed", "err", err)
		os.Exit(1)
	}
}
