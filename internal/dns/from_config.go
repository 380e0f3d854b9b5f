package dns

import (
	"net"
	"net/netip"

	kubelet "k8s.io/kubelet/config/v1beta1"
	netutils "k8s.io/utils/net"
)

// ConfigFrom reads the DNS settings of the configuration. standalone: there is no cluster.
func ConfigFrom(kc *kubelet.KubeletConfiguration, standalone bool, nodeIPs []net.IP) Config {
	c := Config{ClusterDNS: parsed(kc.ClusterDNS), NoCluster: standalone, ClusterDomain: kc.ClusterDomain}
	if kc.ResolverConfig != nil {
		c.ResolvConf = *kc.ResolverConfig
	}
	for _, ip := range nodeIPs {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			c.NodeIPs = append(c.NodeIPs, addr.Unmap())
		}
	}
	return c
}

// parsed returns the servers that are IP addresses. config has reported the others.
func parsed(servers []string) (addresses []string) {
	for _, server := range servers {
		if ip := netutils.ParseIPSloppy(server); ip != nil {
			addresses = append(addresses, ip.String())
		}
	}
	return addresses
}
