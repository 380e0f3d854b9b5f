package dns

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// Hosts is the content of p's hosts file: its own addresses, or on the host's network the
// node's file, and in both cases the aliases of its spec.
func (r *Resolver) Hosts(p *v1.Pod, ips []string) ([]byte, error) {
	var b bytes.Buffer
	if p.Spec.HostNetwork {
		node, err := os.ReadFile(r.cfg.HostsFile)
		if err != nil {
			return nil, fmt.Errorf("read the node's hosts file: %w", err)
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

// EnsureHosts makes the file at path say what Hosts says, readable by every container.
// A new file appears whole; an existing one is rewritten in place, because running
// containers hold a bind mount of that very file.
func (r *Resolver) EnsureHosts(path string, p *v1.Pod, ips []string) error {
	want, err := r.Hosts(p, ips)
	if err != nil {
		return fmt.Errorf("compose hosts file: %w", err)
	}
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = createWhole(path, want)
	case err == nil && !bytes.Equal(have, want):
		err = os.WriteFile(path, want, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write hosts file: %w", err)
	}
	// The umask may have taken bits away, and a container may have changed them.
	if err := os.Chmod(path, 0o644); err != nil {
		return fmt.Errorf("open hosts file to containers: %w", err)
	}
	return nil
}

func createWhole(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".etc-hosts-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
