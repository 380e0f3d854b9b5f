package sandbox

import (
	"fmt"
	"os"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// writeResolvConf replaces what Docker wrote for the pause container. The pod's containers mount this file.
func writeResolvConf(path string, dns *runtimeapi.DNSConfig) error {
	if dns == nil || path == "" {
		return nil
	}
	if err := os.WriteFile(path, []byte(resolvConf(dns)), 0o644); err != nil {
		return fmt.Errorf("write resolv.conf of sandbox: %w", err)
	}
	return nil
}

func resolvConf(dns *runtimeapi.DNSConfig) string {
	var b strings.Builder
	if len(dns.GetSearches()) > 0 {
		fmt.Fprintf(&b, "search %s\n", strings.Join(dns.GetSearches(), " "))
	}
	for _, server := range dns.GetServers() {
		fmt.Fprintf(&b, "nameserver %s\n", server)
	}
	if len(dns.GetOptions()) > 0 {
		fmt.Fprintf(&b, "options %s\n", strings.Join(dns.GetOptions(), " "))
	}
	return b.String()
}
