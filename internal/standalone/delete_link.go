package standalone

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// deleteLink removes a network interface by an RTM_DELLINK request. It is the only route
// request that Swiftlet makes, so a netlink library is not needed.
func deleteLink(index int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer unix.Close(fd)

	request := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	order := binary.NativeEndian
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], unix.RTM_DELLINK)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	order.PutUint32(request[unix.SizeofNlMsghdr+4:], uint32(index)) // ifi_index
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send to netlink: %w", err)
	}
	answer := make([]byte, unix.Getpagesize())
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return fmt.Errorf("receive from netlink: %w", err)
	}
	if n < unix.SizeofNlMsghdr+4 || order.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("receive from netlink: no acknowledgement")
	}
	if code := int32(order.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 && unix.Errno(-code) != unix.ENODEV {
		return unix.Errno(-code)
	}
	return nil
}
