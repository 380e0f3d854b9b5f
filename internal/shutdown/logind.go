package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"

	"swiftlet/internal/checkpoint"
)

const (
	login1    = "org.freedesktop.login1"
	login1Mgr = login1 + ".Manager"
	going     = "PrepareForShutdown"
	// dropIn is where logind is told to wait for longer; the reference kubelet's file.
	dropIn = "99-kubelet.conf"
)

// login is a connection to systemd-logind.
type login struct {
	conn    *dbus.Conn
	signals chan *dbus.Signal
}

// connect reaches logind over the bus at an address; "" is the system's.
func connect(ctx context.Context, address string) (*login, error) {
	var conn *dbus.Conn
	var err error
	if address == "" {
		conn, err = dbus.ConnectSystemBus(dbus.WithContext(ctx))
	} else {
		conn, err = dbus.Connect(address, dbus.WithContext(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("reach the system bus: %w", err)
	}
	l := &login{conn: conn, signals: make(chan *dbus.Signal, 8)}
	conn.Signal(l.signals)
	err = conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(login1Mgr), dbus.WithMatchMember(going), dbus.WithMatchObjectPath(l.manager().Path()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch for a shutdown: %w", err), conn.Close())
	}
	return l, nil
}

func (l *login) manager() dbus.BusObject { return l.conn.Object(login1, "/org/freedesktop/login1") }

func (l *login) close() error { return l.conn.Close() }

// delay is how long logind waits for those who hold it up.
func (l *login) delay() (time.Duration, error) {
	value, err := l.manager().GetProperty(login1Mgr + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("ask logind how long it waits: %w", err)
	}
	micros, ok := value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("ask logind how long it waits: it answers %v", value)
	}
	return time.Duration(micros) * time.Microsecond, nil
}

// hold makes a shutdown wait until the file is closed.
func (l *login) hold(ctx context.Context) (*os.File, error) {
	var fd dbus.UnixFD
	err := l.manager().CallWithContext(ctx, login1Mgr+".Inhibit", 0,
		"shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay").Store(&fd)
	if err != nil {
		return nil, fmt.Errorf("hold a shutdown up: %w", err)
	}
	return os.NewFile(uintptr(fd), "shutdown inhibitor"), nil
}

// extend has logind wait for longer: by a file of its configuration, which it is told to
// read again.
func (l *login) extend(ctx context.Context, dir string, wanted time.Duration) error {
	text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", wanted.Seconds())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("have logind wait for longer: %w", err)
	}
	if err := checkpoint.Replace(filepath.Join(dir, dropIn), []byte(text), 0o644); err != nil {
		return fmt.Errorf("have logind wait for longer: %w", err)
	}
	const hangup = int32(1)
	err := l.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", hangup).Err
	if err != nil {
		return fmt.Errorf("have logind wait for longer: %w", err)
	}
	return nil
}

// next waits for the word that the machine goes down (true), or that it does not after all.
func (l *login) next(ctx context.Context) (down bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case signal, open := <-l.signals:
			if !open {
				return false, errors.New("watch for a shutdown: the bus hung up")
			}
			if signal.Name == login1Mgr+"."+going && len(signal.Body) > 0 {
				if down, ok := signal.Body[0].(bool); ok {
					return down, nil
				}
			}
		}
	}
}
