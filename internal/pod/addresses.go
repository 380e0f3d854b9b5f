package pod

import "net/netip"

// Addresses picks those of a sandbox's addresses that its pod is known by. A sandbox may
// have any number of them, in any order, while a pod has one of each family, that of the
// node first.
func Addresses(ips []string, ipv6First bool) []string {
	var picked []string
	for _, six := range []bool{ipv6First, !ipv6First} {
		for _, ip := range ips {
			if addr, err := netip.ParseAddr(ip); err == nil && addr.Unmap().Is6() == six {
				picked = append(picked, ip)
				break
			}
		}
	}
	return picked
}
