package serviceproxy

import (
	"strings"

	"swiftlet/internal/boundedio"
)

// bridgeFilterFile exists if the kernel has the module br_netfilter.
const bridgeFilterFile = "/proc/sys/net/bridge/bridge-nf-call-iptables"

// bridgeFiltered reports whether the packet filter sees what a bridge forwards. Otherwise it does not see the answer of
// a pod to another one, which would come from an address that was never called, unless the answer goes to the bridge's
// own address.
func bridgeFiltered() bool {
	content, err := boundedio.ReadFile(bridgeFilterFile, boundedio.Small)
	return err == nil && strings.TrimSpace(string(content)) == "1"
}
