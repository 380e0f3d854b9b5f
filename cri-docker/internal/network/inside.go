package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
)

// DialInside connects to a port on the loopback interface of a network namespace.
func DialInside(ctx context.Context, netns string, port int32) (net.Conn, error) {
	var conn net.Conn
	err := ns.WithNetNSPath(netns, func(ns.NetNS) error {
		var errs []error
		for _, host := range []string{"127.0.0.1", "::1"} {
			// Without a fallback delay the dialer stays on this thread, which has entered the namespace.
			dialer := net.Dialer{Timeout: 30 * time.Second, FallbackDelay: -1}
			var err error
			if conn, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, fmt.Sprint(port))); err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return nil, fmt.Errorf("connect to port %d of the pod: %w", port, err)
	}
	return conn, nil
}

// OfProcess is the network namespace of a process.
func OfProcess(pid int) string { return fmt.Sprintf("/proc/%d/ns/net", pid) }
