// Package logind is a fake systemd-logind on a real D-Bus daemon, for tests of graceful node
// shutdown.
package logind

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
)

const (
	manager = "org.freedesktop.login1.Manager"
	object  = dbus.ObjectPath("/org/freedesktop/login1")
)

// BusConfig is a configuration of dbus-daemon that allows all users to own and send everything.
func BusConfig(socket string) string {
	return fmt.Sprintf(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
  </policy>
</busconfig>
`, socket)
}

// Logind implements the methods of systemd-logind and systemd that the agent calls.
type Logind struct {
	conn  *dbus.Conn
	props *prop.Properties
	// delayAfterReload is InhibitDelayMaxUSec after a reload of the configuration.
	delayAfterReload uint64

	mu       sync.Mutex
	locks    []*os.File // our copies of the inhibitor locks
	released chan struct{}
}

// Start connects to the bus and takes the names of logind and systemd. InhibitDelayMaxUSec is delay,
// and delayAfterReload after logind was signalled to reload its configuration.
func Start(address string, delay, delayAfterReload uint64) (*Logind, error) {
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, fmt.Errorf("start logind: %w", err)
	}
	l := &Logind{conn: conn, delayAfterReload: delayAfterReload, released: make(chan struct{}, 16)}
	if err := conn.Export(l, object, manager); err != nil {
		return nil, fmt.Errorf("start logind: %w", err)
	}
	if err := conn.Export(systemd{l}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		return nil, fmt.Errorf("start logind: %w", err)
	}
	l.props, err = prop.Export(conn, object, prop.Map{manager: {
		"InhibitDelayMaxUSec": {Value: delay, Emit: prop.EmitFalse},
	}})
	if err != nil {
		return nil, fmt.Errorf("start logind: %w", err)
	}
	for _, name := range []string{"org.freedesktop.login1", "org.freedesktop.systemd1"} {
		if answer, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || answer != dbus.RequestNameReplyPrimaryOwner {
			return nil, fmt.Errorf("start logind: take the name %s: %v, %w", name, answer, err)
		}
	}
	return l, nil
}

// Inhibit is a method of logind. It returns an inhibitor lock: shutdown waits until it is closed.
func (l *Logind) Inhibit(what, _, _, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || mode != "delay" {
		return 0, dbus.MakeFailedError(fmt.Errorf("inhibit %s by %s", what, mode))
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locks = append(l.locks, writer)
	go func() { // until all copies of the write end are closed
		_, _ = reader.Read(make([]byte, 1))
		_ = reader.Close()
		l.released <- struct{}{}
	}()
	return dbus.UnixFD(writer.Fd()), nil
}

// Held returns the number of inhibitor locks.
func (l *Logind) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.locks)
}

// Released receives a value for each released inhibitor lock.
func (l *Logind) Released() <-chan struct{} { return l.released }

// Announce sends PrepareForShutdown: the shutdown begins, or is cancelled.
func (l *Logind) Announce(down bool) error {
	l.mu.Lock()
	for _, writer := range l.locks { // from now on only the agent's copies count
		_ = writer.Close()
	}
	l.locks = nil
	l.mu.Unlock()
	return l.conn.Emit(object, manager+".PrepareForShutdown", down)
}

// Close disconnects from the bus.
func (l *Logind) Close() error { return l.conn.Close() }

type systemd struct{ *Logind }

// KillUnit is a method of systemd. The agent uses it to signal logind to reload its configuration.
func (s systemd) KillUnit(unit, _ string, _ int32) *dbus.Error {
	if filepath.Base(unit) == "systemd-logind.service" {
		s.props.SetMust(manager, "InhibitDelayMaxUSec", s.delayAfterReload)
	}
	return nil
}
