package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/system"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/engine"
	"swiftlet/cri-docker/internal/events"
	"swiftlet/cri-docker/internal/host"
	"swiftlet/cri-docker/internal/image"
	"swiftlet/cri-docker/internal/logs"
	"swiftlet/cri-docker/internal/network"
	"swiftlet/cri-docker/internal/sandbox"
	"swiftlet/cri-docker/internal/server"
	"swiftlet/cri-docker/internal/stats"
	"swiftlet/cri-docker/internal/streaming"
)

const (
	retryAfter = time.Second
	// farewell bounds what requests may take after a signal to end.
	farewell = 10 * time.Second
)

// run serves until ctx ends.
func run(ctx context.Context, o options, log *slog.Logger) error {
	docker, err := engine.New(o.docker)
	if err != nil {
		return err
	}
	defer docker.Close()
	info, err := awaitDocker(ctx, docker, log)
	if err != nil || ctx.Err() != nil {
		return err
	}
	s, converter, err := assemble(o, docker, info, log)
	if err != nil {
		return err
	}
	listener, err := listen(o.listen)
	if err != nil {
		return err
	}
	log.Info("serving the CRI", "socket", o.listen, "docker", info.ServerVersion, "cgroupDriver", info.CgroupDriver, "storageDriver", info.Driver)
	g := grpc.NewServer(server.Options(log)...)
	s.Register(g)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return converter.Run(ctx) })
	group.Go(func() error { return s.Events.Run(ctx) })
	group.Go(func() error { return s.Streams.Run(ctx) })
	group.Go(func() error { return serve(ctx, g, listener) })
	return group.Wait()
}

// serve answers until ctx ends, and then only what was asked before.
func serve(ctx context.Context, g *grpc.Server, listener net.Listener) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		late := time.AfterFunc(farewell, g.Stop)
		defer late.Stop()
		g.GracefulStop()
	})
	err := g.Serve(listener)
	if !stop() {
		<-stopped
	}
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve the CRI: %w", err)
	}
	return nil
}

// awaitDocker waits until Docker answers, as both may start at the same time.
func awaitDocker(ctx context.Context, e *engine.Engine, log *slog.Logger) (system.Info, error) {
	logged := ""
	for {
		info, err := e.Info(ctx)
		if err == nil || ctx.Err() != nil {
			return info, nil
		}
		if engine.Incompatible(err) {
			return info, err
		}
		if err.Error() != logged {
			logged = err.Error()
			log.Warn("waiting for Docker", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAfter):
		}
	}
}

// listen replaces the socket of a process that is gone. Only root may connect.
func listen(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: another process listens there", path), conn.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), listener.Close())
	}
	return listener, nil
}

// assemble connects the parts. Nothing runs yet.
func assemble(o options, docker *engine.Engine, info system.Info, log *slog.Logger) (*server.Server, *logs.Logs, error) {
	limits, err := host.ReadLimits(log)
	if err != nil {
		return nil, nil, err
	}
	converter, err := logs.New(o.stateDir+"/logs", log)
	if err != nil {
		return nil, nil, err
	}
	containers := &container.Containers{
		Engine: docker, Logs: converter, CgroupDriver: info.CgroupDriver, Log: log,
		Abilities: container.Abilities{Limits: limits, AppArmor: slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
			return strings.HasPrefix(option, "name=apparmor")
		})},
	}
	net := network.New(network.Config{ConfDir: o.cniConfDir, CacheDir: o.cniCacheDir, BinDirs: o.cniBinDirs})
	sandboxes := &sandbox.Sandboxes{Engine: docker, Network: net, Containers: containers, PauseImage: o.pauseImage, Log: log}
	commands := &streaming.Commands{Engine: docker, Log: log}
	runtime := &streaming.Runtime{Commands: commands, Containers: containers, Sandboxes: sandboxes}
	streams, err := streaming.New(o.streamAddress, runtime)
	if err != nil {
		return nil, nil, err
	}
	return &server.Server{
		Build: version, Engine: docker, Network: net, Containers: containers, Sandboxes: sandboxes,
		Images: &image.Images{Engine: docker, PauseImage: o.pauseImage}, Filesystem: &image.Filesystem{Engine: docker},
		Stats: &stats.Stats{Engine: docker, Containers: containers, Sandboxes: sandboxes},
		Events: &events.Events{Engine: docker, Containers: containers, Sandboxes: sandboxes, Log: log, Connected: func(ctx context.Context) {
			containers.ResumeLogs(ctx)
			sandboxes.ReleaseNetworks(ctx)
		}},
		Commands: commands, Runtime: runtime, Streams: streams, Log: log,
	}, converter, nil
}
