package probe

import (
	"context"
	"net"
)

// checkTCP opens and resets a connection. A reset instead of a close leaves no port in TIME_WAIT
// on the node.
func checkTCP(ctx context.Context, t Target) Outcome {
	port, err := portOf(t.Probe.TCPSocket.Port, t.Container)
	if err != nil {
		return errored(err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addressOf(t.Probe.TCPSocket.Host, port, t))
	if err != nil {
		return unreachable(ctx, err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	return passed("")
}
