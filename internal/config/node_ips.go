package config

import (
	"errors"
	"net"
	"strings"

	utilnet "k8s.io/utils/net"
)

// NodeIPs returns the addresses of --node-ip: one, or one of each family. Values that are no addresses are
// invalid, which is no error: the kubelet ignores them.
func NodeIPs(f *Flags) (ips []net.IP, invalid []string, err error) {
	if f.NodeIP == "" {
		return nil, nil, nil
	}
	for text := range strings.SplitSeq(f.NodeIP, ",") {
		text = strings.TrimSpace(text)
		if ip := utilnet.ParseIPSloppy(text); ip != nil {
			ips = append(ips, ip)
		} else {
			invalid = append(invalid, text)
		}
	}
	if len(ips) < 2 {
		return ips, invalid, nil
	}
	switch {
	case len(ips) > 2 || utilnet.IsIPv6(ips[0]) == utilnet.IsIPv6(ips[1]):
		err = errors.New("must contain either a single IP or a dual-stack pair of IPs")
	case f.CloudProvider != "" && f.CloudProvider != "external":
		err = errors.New("dual-stack not supported in this configuration")
	case ips[0].IsUnspecified() || ips[1].IsUnspecified():
		err = errors.New("dual-stack node IP cannot include '0.0.0.0' or '::'")
	}
	if err != nil {
		ips = nil
	}
	return ips, invalid, err
}
