package nftables

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// receiveBuffer is the size of the kernel's largest delivery in one read.
const receiveBuffer = 32 << 10

// Listener receives the kernel's notifications about changes of nftables in the network
// namespace in which it was created.
type Listener struct{ socket *os.File }

// Listen subscribes to notifications. Run reports changes from now on.
func Listen() (*Listener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("subscribe to nftables: %w", err)
	}
	return &Listener{os.NewFile(uintptr(fd), "nftables")}, nil
}

// Run calls deleted after the deletion of a chain that match accepts, and after lost messages. It
// blocks until ctx is done or the socket fails, and closes the listener.
func (l *Listener) Run(ctx context.Context, match func(Chain) bool, deleted func()) error {
	defer l.socket.Close()
	defer context.AfterFunc(ctx, func() { l.socket.Close() })()
	for buffer := make([]byte, receiveBuffer); ; {
		n, err := l.socket.Read(buffer)
		switch {
		case errors.Is(err, unix.ENOBUFS): // the kernel dropped messages
			deleted()
		case err != nil:
			return fmt.Errorf("read from nftables: %w", err)
		case anyDeleted(buffer[:n], match):
			deleted()
		}
	}
}
