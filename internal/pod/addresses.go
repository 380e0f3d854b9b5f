package pod

import "net/netip"

// Addresses returns the pod IPs among the IPs of its sandbox. A sandbox may have any number of IPs in
// any order; a pod has one of each family, the node's primary family first.
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
