package preflight

import (
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/procfs"

	"swiftlet/internal/config"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = 0x0A

// ports checks that no other process listens where the kubelet has to. The health check is not among them:
// the kubelet starts without it and tries again. It ignores the process that ends first.
func ports(cfg *config.Config, replaced int) error {
	kc := &cfg.Kubelet
	var errs []error
	if *kc.EnableServer {
		errs = append(errs, about("port", free(kc.Address, kc.Port, replaced)))
	}
	if kc.ReadOnlyPort > 0 {
		errs = append(errs, about("readOnlyPort", free(kc.Address, kc.ReadOnlyPort, replaced)))
	}
	return errors.Join(errs...)
}

// free returns an error that names the process that listens on the address. What the kernel does not show,
// the server finds when it listens itself.
func free(address string, port int32, except int) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	//lint:ignore SA1019 netlink is faster with very many sockets, which does not matter once per start
	v4, _ := proc.NetTCP()
	//lint:ignore SA1019 as above
	v6, _ := proc.NetTCP6()
	for _, socket := range append(v4, v6...) {
		if socket.St != listening || socket.LocalPort != uint64(port) || !overlap(net.ParseIP(address), socket.LocalAddr) {
			continue
		}
		if pid, name := ownerOf(proc, socket.Inode); pid != except || pid == 0 {
			return fmt.Errorf("%d is in use%s", port, name)
		}
	}
	return nil
}

// overlap reports whether two sockets with one port exclude each other. A socket of all IPv6 addresses
// accepts connections to IPv4 addresses, too.
func overlap(a, b net.IP) bool {
	if sameFamily := (a.To4() == nil) == (b.To4() == nil); !sameFamily {
		return a.To4() == nil && a.IsUnspecified() || b.To4() == nil && b.IsUnspecified()
	}
	return a.IsUnspecified() || b.IsUnspecified() || a.Equal(b)
}

// ownerOf finds the process that has a socket open; 0 if it is not visible.
func ownerOf(proc procfs.FS, inode uint64) (pid int, name string) {
	all, _ := proc.AllProcs()
	for _, p := range all {
		targets, _ := p.FileDescriptorTargets() // processes end, and those of others are hidden
		for _, target := range targets {
			if target == fmt.Sprintf("socket:[%d]", inode) {
				command, _ := p.Comm()
				return p.PID, fmt.Sprintf(" by %s (PID %d)", command, p.PID)
			}
		}
	}
	return 0, ""
}
