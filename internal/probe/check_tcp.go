package probe

import (
	"context"
	"net"
)

// checkTCP connects and hangs up. The connection is reset rather than closed, so that
// probes leave no port waiting on the node.
func checkTCP(ctx context.Context, t Target) Answer {
	port, err := portOf(t.Probe.TCPSocket.Port, t.Container)
	if err != nil {
		return unsure(err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addressOf(t.Probe.TCPSocket.Host, port, t))
	if err != nil {
		return failed(err.Error())
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
	return passed("")
}
