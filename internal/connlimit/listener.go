package connlimit

import (
	"net"
	"time"

	"swiftlet/internal/backoff"
)

// acceptRetry is the pause after an error that may pass, such as a lack of descriptors.
var acceptRetry = backoff.Backoff{First: 5 * time.Millisecond, Longest: time.Second}

// Listener accepts connections within the limits.
type Listener struct {
	net.Listener
	connections *Connections
}

// Limit returns a listener that counts what it accepts in connections, which other listeners may share.
func Limit(l net.Listener, connections *Connections) Listener { return Listener{l, connections} }

// Accept returns the next connection. It closes those of sources that open too many. After an error that may
// pass it waits and tries again: not every server does.
func (l Listener) Accept() (net.Conn, error) {
	retry := acceptRetry
	for {
		accepted, err := l.Listener.Accept()
		if temporary(err) {
			l.connections.deps.Failed(err)
			time.Sleep(retry.Next())
			continue
		}
		if err != nil {
			return nil, err
		}
		retry.Reset()
		if c := l.connections.add(accepted); c != nil {
			return c, nil
		}
		_ = accepted.Close()
	}
}

// temporary reports whether a later call may succeed, as net/http does.
func temporary(err error) bool {
	failed, ok := err.(net.Error)
	//lint:ignore SA1019 net/http asks this as well: there is no other way to find out.
	return ok && failed.Temporary()
}
