package dns

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const (
	hostsHeader     = "# Kubernetes-managed hosts file.\n"
	hostsHeaderNode = "# Kubernetes-managed hosts file (host network).\n"
	hostsLoopback   = "127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n"
)

// Hosts returns the content of p's hosts file: its IPs, or in the host network the node's hosts
// file, and in both cases its host aliases.
func (r *Resolver) Hosts(p *v1.Pod, ips []string) ([]byte, error) {
	var b bytes.Buffer
	if p.Spec.HostNetwork {
		node, err := readNodeHosts(r.cfg.HostsFile)
		if err != nil {
			return nil, fmt.Errorf("read hosts file of the node: %w", err)
		}
		b.WriteString(hostsHeaderNode)
		b.Write(node)
	} else {
		host, domain, err := r.Hostname(p)
		if err != nil {
			return nil, err
		}
		names := host
		if domain != "" {
			names = host + "." + domain + "\t" + host
		}
		b.WriteString(hostsHeader + hostsLoopback)
		for _, ip := range ips {
			b.WriteString(ip + "\t" + names + "\n")
		}
	}
	if len(p.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range p.Spec.HostAliases {
			b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
		}
	}
	return b.Bytes(), nil
}

// maxNodeHosts bounds the size of the node's hosts file. The largest ones in use, lists of
// blocked names, have a few megabytes.
const maxNodeHosts = 16 << 20

// readNodeHosts fails if the file is too large: a truncated hosts file would mislead the pod.
func readNodeHosts(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxNodeHosts {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxNodeHosts)
	}
	return io.ReadAll(io.LimitReader(f, maxNodeHosts))
}
