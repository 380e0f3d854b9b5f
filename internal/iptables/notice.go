package iptables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	familyIPv4 = unix.AF_INET
	familyIPv6 = unix.AF_INET6
)

const (
	// chainDeleted is the kernel's message that a chain of nftables is gone.
	chainDeleted = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELCHAIN
	// genHeader follows the header of every message: family, version, and two bytes more.
	genHeader = 4
	// attrHead is an attribute's length and kind; of the kind two bits mean something else.
	attrHead = 4
	attrKind = 1<<14 - 1
	// notices is room for as many messages as the kernel gives at a time.
	notices = 32 << 10
)

// subscribe opens what the kernel tells about changes of nftables, in this network namespace.
func subscribe() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen to nftables: %w", err)
	}
	return os.NewFile(uintptr(fd), "nftables"), nil
}

// canaryDeleted reports whether among these messages is that a canary of the family is gone,
// or one that is not whole.
func canaryDeleted(messages []byte, family uint8) bool {
	for len(messages) > 0 {
		if len(messages) < unix.SizeofNlMsghdr {
			return true
		}
		length := int(binary.NativeEndian.Uint32(messages))
		if length < unix.SizeofNlMsghdr || length > len(messages) {
			return true
		}
		kind, body := binary.NativeEndian.Uint16(messages[4:]), messages[unix.SizeofNlMsghdr:length]
		if kind == chainDeleted && len(body) >= genHeader && body[0] == family && chainName(body[genHeader:]) == canary {
			return true
		}
		messages = messages[min(aligned(length), len(messages)):]
	}
	return false
}

// chainName finds the chain's name among its attributes; "" where there is none.
func chainName(attributes []byte) string {
	for len(attributes) >= attrHead {
		length, kind := int(binary.NativeEndian.Uint16(attributes)), binary.NativeEndian.Uint16(attributes[2:])
		if length < attrHead || length > len(attributes) {
			return ""
		}
		if kind&attrKind == unix.NFTA_CHAIN_NAME {
			name, _, _ := bytes.Cut(attributes[attrHead:length], []byte{0})
			return string(name)
		}
		attributes = attributes[min(aligned(length), len(attributes)):]
	}
	return ""
}

// aligned is where the next message or attribute begins.
func aligned(length int) int { return (length + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }
