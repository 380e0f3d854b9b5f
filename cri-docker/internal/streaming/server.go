package streaming

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"swiftlet/cri-docker/internal/container"
	"swiftlet/cri-docker/internal/network"
	"swiftlet/cri-docker/internal/sandbox"
)

// Server serves streams at URLs that are valid once. Whoever has such a URL may use it, so it listens on
// loopback unless it is configured otherwise.
type Server struct {
	streaming.Server
	listener net.Listener
}

// New listens on the address. Run serves.
func New(address string, r *Runtime) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for streams: %w", err)
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	server, err := streaming.NewServer(config, r)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve streams: %w", err), listener.Close())
	}
	return &Server{Server: server, listener: listener}, nil
}

// Run serves until ctx ends, and then ends all streams.
func (s *Server) Run(ctx context.Context) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve streams: %w", err)
	}
	return nil
}

// Runtime connects streams with containers.
type Runtime struct {
	Commands   *Commands
	Containers *container.Containers
	Sandboxes  *sandbox.Sandboxes
}

// Exec runs a command.
func (r *Runtime) Exec(ctx context.Context, id string, command []string, in io.Reader, out, errs io.WriteCloser, tty bool, size <-chan remotecommand.TerminalSize) error {
	if err := r.Running(ctx, id); err != nil {
		return err
	}
	code, err := r.Commands.Run(ctx, id, command, streams(in, out, errs, tty, size))
	if err != nil {
		return err
	}
	return exitError(code)
}

// Attach connects to the first process of a container.
func (r *Runtime) Attach(ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, tty bool, size <-chan remotecommand.TerminalSize) error {
	if err := r.Running(ctx, id); err != nil {
		return err
	}
	e := r.Commands.Engine
	conn, err := e.Attach(ctx, id, in != nil, out != nil, errs != nil)
	if err != nil {
		return err
	}
	stop := resize(ctx, size, func(ctx context.Context, height, width uint) error { return e.Resize(ctx, id, height, width) })
	defer stop()
	if err := copyStreams(ctx, conn, streams(in, out, errs, tty, nil)); err != nil {
		return fmt.Errorf("attach to container %s: %w", id, err)
	}
	return nil
}

// Running returns an error unless it is a running container of this server.
func (r *Runtime) Running(ctx context.Context, id string) error {
	c, _, err := r.Containers.Find(ctx, id)
	if err != nil {
		return err
	}
	if !c.State.Running {
		return fmt.Errorf("container %s is not running", id)
	}
	return nil
}

// PortForward connects a stream with a port on the pod's loopback interface.
func (r *Runtime) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	c, _, err := r.Sandboxes.Find(ctx, id)
	if err != nil {
		return err
	}
	if !c.State.Running {
		return fmt.Errorf("sandbox %s is not running", id)
	}
	conn, err := network.DialInside(ctx, network.OfProcess(c.State.Pid), port)
	if err != nil {
		return err
	}
	return pipe(ctx, conn.(*net.TCPConn), stream)
}

// pipe copies in both directions until the pod has closed its side.
func pipe(ctx context.Context, conn *net.TCPConn, stream io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream) // ends when either side closes; the reader below reports errors
		_ = conn.CloseWrite()
	}()
	_, err := io.Copy(stream, conn)
	return errors.Join(err, stream.Close())
}

func streams(in io.Reader, out, errs io.WriteCloser, tty bool, size <-chan remotecommand.TerminalSize) Streams {
	s := Streams{In: in, TTY: tty, Resize: size}
	if out != nil { // a nil WriteCloser would be a Writer that is not nil
		s.Out = out
	}
	if errs != nil {
		s.Err = errs
	}
	return s
}
