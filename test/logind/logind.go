// Package logind stands in for systemd-logind on a real D-Bus daemon, for the tests of
// graceful shutdown.
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

// BusConfig is a dbus-daemon's configuration that lets everybody own and say everything.
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

// Logind answers for systemd-logind, and for systemd as far as it concerns logind.
type Logind struct {
	conn  *dbus.Conn
	props *prop.Properties
	// longer is the delay once the configuration was read again, in microseconds.
	longer uint64

	mu       sync.Mutex
	holders  []*os.File // our ends of what was handed out
	released chan struct{}
}

// Start takes the names on the bus at an address. delay is how long it says that it waits,
// and longer what it says after it was told to read its configuration again.
func Start(address string, delay, longer uint64) (*Logind, error) {
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, fmt.Errorf("start logind: %w", err)
	}
	l := &Logind{conn: conn, longer: longer, released: make(chan struct{}, 16)}
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

// Inhibit is logind's method: the shutdown waits until what it returns is closed.
func (l *Logind) Inhibit(what, _, _, mode string) (dbus.UnixFD, *dbus.Error) {
	if what != "shutdown" || mode != "delay" {
		return 0, dbus.MakeFailedError(fmt.Errorf("inhibit %s by %s", what, mode))
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders = append(l.holders, theirs)
	go func() { // until all copies of the other end are closed
		_, _ = ours.Read(make([]byte, 1))
		_ = ours.Close()
		l.released <- struct{}{}
	}()
	return dbus.UnixFD(theirs.Fd()), nil
}

// Held is how many wait to be released.
func (l *Logind) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holders)
}

// Released says, for each hold, that it is over.
func (l *Logind) Released() <-chan struct{} { return l.released }

// Announce says that the machine goes down, or that it does not after all.
func (l *Logind) Announce(down bool) error {
	l.mu.Lock()
	for _, theirs := range l.holders { // only the copies that were handed out count from now on
		_ = theirs.Close()
	}
	l.holders = nil
	l.mu.Unlock()
	return l.conn.Emit(object, manager+".PrepareForShutdown", down)
}

// Close leaves the bus.
func (l *Logind) Close() error { return l.conn.Close() }

type systemd struct{ *Logind }

// KillUnit is systemd's method, by which logind is told to read its configuration again.
func (s systemd) KillUnit(unit, _ string, _ int32) *dbus.Error {
	if filepath.Base(unit) == "systemd-logind.service" {
		s.props.SetMust(manager, "InhibitDelayMaxUSec", s.longer)
	}
	return nil
}
