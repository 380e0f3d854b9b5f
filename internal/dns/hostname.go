package dns

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	maxHostname = 63 // the kernel's 64 bytes with their terminator
	maxFQDN     = 64
)

// Hostname returns the hostname of p and, if it has a subdomain, its domain, as in its hosts
// file.
func (r *Resolver) Hostname(p *v1.Pod) (host, domain string, err error) {
	if p.Spec.HostnameOverride != nil {
		host := *p.Spec.HostnameOverride
		if problems := validation.IsDNS1123Subdomain(host); len(problems) != 0 {
			return "", "", fmt.Errorf("pod HostnameOverride %q is not a valid DNS subdomain: %s", host, strings.Join(problems, ";"))
		}
		host, err := truncate(p.Name, host)
		return host, "", err
	}
	host = p.Name
	if p.Spec.Hostname != "" {
		if problems := validation.IsDNS1123Label(p.Spec.Hostname); len(problems) != 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", p.Spec.Hostname, strings.Join(problems, ";"))
		}
		host = p.Spec.Hostname
	}
	if host, err = truncate(p.Name, host); err != nil {
		return "", "", err
	}
	if p.Spec.Subdomain == "" {
		return host, "", nil
	}
	if problems := validation.IsDNS1123Label(p.Spec.Subdomain); len(problems) != 0 {
		return "", "", fmt.Errorf("pod Subdomain %q is not a valid DNS label: %s", p.Spec.Subdomain, strings.Join(problems, ";"))
	}
	return host, fmt.Sprintf("%s.%s.svc.%s", p.Spec.Subdomain, p.Namespace, r.cfg.ClusterDomain), nil
}

// KernelHostname returns the hostname that the kernel reports to p's processes: the short one,
// or the FQDN with setHostnameAsFQDN. It is "" for a pod in the host network.
func (r *Resolver) KernelHostname(p *v1.Pod) (string, error) {
	if p.Spec.HostNetwork {
		return "", nil
	}
	host, domain, err := r.Hostname(p)
	if err != nil {
		return "", err
	}
	if domain == "" || p.Spec.SetHostnameAsFQDN == nil || !*p.Spec.SetHostnameAsFQDN {
		return host, nil
	}
	full := host + "." + domain
	if len(full) > maxFQDN {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			full, maxFQDN, len(full))
	}
	return full, nil
}

// truncate truncates a name to the kernel's limit, without a separator at the end.
func truncate(podName, host string) (string, error) {
	if len(host) <= maxHostname {
		return host, nil
	}
	short := strings.TrimRight(host[:maxHostname], "-.")
	if short == "" {
		return "", fmt.Errorf("hostname for pod %q was invalid: %q", podName, host)
	}
	return short, nil
}
