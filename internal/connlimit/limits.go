package connlimit

import (
	"net/netip"
	"syscall"
)

// Limits bound connections.
type Limits struct {
	// Connections are those that are not trusted, of all sources; PerSource those of one.
	Connections, PerSource int
	// Handshakes of a source that run at a time. Others wait.
	Handshakes int
	// PendingBytes were read from connections that are not trusted and belong to requests that are not
	// complete. Beyond them only small requests are read. Zero is no limit.
	PendingBytes int64
}

const (
	// mostConnections is more than the pods of a full node have.
	mostConnections = 512
	// sourceShare is the part of all connections that one source may have.
	sourceShare = 4
	// descriptorShare is the part of the process' descriptors that all connections may have.
	descriptorShare = 4
)

// ForProcess returns limits that leave most of the process' descriptors to its other work.
func ForProcess() Limits {
	all := mostConnections
	var descriptors syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &descriptors); err == nil && descriptors.Cur/descriptorShare < mostConnections {
		all = max(int(descriptors.Cur/descriptorShare), sourceShare)
	}
	return Limits{Connections: all, PerSource: all / sourceShare}
}

// Source is where a client connects from: its IPv4 address, or the /64 network of its IPv6 address,
// of which one host may use all.
type Source = netip.Prefix

// SourceOf returns the source of a remote address. Addresses without an IP share the zero source.
func SourceOf(remote string) Source {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Source{}
	}
	address, bits := at.Addr().Unmap().WithZone(""), 32
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // fails only for other numbers of bits
	return prefix
}
