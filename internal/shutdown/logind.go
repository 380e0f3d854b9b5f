package shutdown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"

	"swiftlet/internal/checkpoint"
)

const (
	login1             = "org.freedesktop.login1"
	login1Manager      = login1 + ".Manager"
	prepareForShutdown = "PrepareForShutdown"
	// dropIn is the name of the configuration file for logind, the same as the reference
	// kubelet's.
	dropIn = "99-kubelet.conf"
)

// logindConn is a connection to systemd-logind.
type logindConn struct {
	conn    *dbus.Conn
	signals chan *dbus.Signal
}

// connect connects to the bus at an address, "" for the system bus, and subscribes to
// logind's shutdown signal.
func connect(ctx context.Context, address string) (*logindConn, error) {
	var conn *dbus.Conn
	var err error
	if address == "" {
		conn, err = dbus.ConnectSystemBus(dbus.WithContext(ctx))
	} else {
		conn, err = dbus.Connect(address, dbus.WithContext(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("connect to system bus: %w", err)
	}
	l := &logindConn{conn: conn, signals: make(chan *dbus.Signal, 8)}
	conn.Signal(l.signals)
	err = conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(login1), dbus.WithMatchInterface(login1Manager), dbus.WithMatchMember(prepareForShutdown), dbus.WithMatchObjectPath(l.manager().Path()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to PrepareForShutdown: %w", err), conn.Close())
	}
	return l, nil
}

func (l *logindConn) manager() dbus.BusObject {
	return l.conn.Object(login1, "/org/freedesktop/login1")
}

func (l *logindConn) close() error { return l.conn.Close() }

// inhibitDelay is how long logind delays a shutdown for inhibitors at most.
func (l *logindConn) inhibitDelay() (time.Duration, error) {
	value, err := l.manager().GetProperty(login1Manager + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("read InhibitDelayMaxUSec: %w", err)
	}
	micros, ok := value.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("read InhibitDelayMaxUSec: unexpected value %v", value)
	}
	return time.Duration(min(micros, math.MaxInt64/1000)) * time.Microsecond, nil // more is infinity
}

// inhibit takes an inhibitor lock, which delays a shutdown until the file is closed.
func (l *logindConn) inhibit(ctx context.Context) (*os.File, error) {
	var fd dbus.UnixFD
	err := l.manager().CallWithContext(ctx, login1Manager+".Inhibit", 0,
		"shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay").Store(&fd)
	if err != nil {
		return nil, fmt.Errorf("inhibit shutdown: %w", err)
	}
	return os.NewFile(uintptr(fd), "shutdown inhibitor"), nil
}

// setInhibitDelay writes a configuration file with the maximum delay, and has logind reload its
// configuration.
func (l *logindConn) setInhibitDelay(ctx context.Context, dir string, delay time.Duration) error {
	text := fmt.Sprintf("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=%.0f\n", delay.Seconds())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("set InhibitDelayMaxSec: %w", err)
	}
	if err := checkpoint.Replace(filepath.Join(dir, dropIn), []byte(text), 0o644); err != nil {
		return fmt.Errorf("set InhibitDelayMaxSec: %w", err)
	}
	const hangup = int32(1)
	err := l.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", hangup).Err
	if err != nil {
		return fmt.Errorf("set InhibitDelayMaxSec: %w", err)
	}
	return nil
}

// nextSignal waits for the next PrepareForShutdown signal: true announces a shutdown, false
// cancels it.
func (l *logindConn) nextSignal(ctx context.Context) (starting bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case signal, open := <-l.signals:
			if !open {
				return false, errors.New("wait for PrepareForShutdown: D-Bus connection closed")
			}
			if signal.Name == login1Manager+"."+prepareForShutdown && len(signal.Body) > 0 && l.isLogind(ctx, signal.Sender) {
				if starting, ok := signal.Body[0].(bool); ok {
					return starting, nil
				}
			}
		}
	}
}

// isLogind reports whether a connection of the bus is logind's. Every user may send its signals to this
// connection, whatever it has subscribed to.
func (l *logindConn) isLogind(ctx context.Context, sender string) bool {
	var owner string
	err := l.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, login1).Store(&owner)
	return err == nil && owner == sender
}
