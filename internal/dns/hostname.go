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

// Hostname is what p's hosts file calls it: its host name and, where it has a subdomain,
// the domain below the cluster's.
func (r *Resolver) Hostname(p *v1.Pod) (host, domain string, err error) {
	if p.Spec.HostnameOverride != nil {
		host := *p.Spec.HostnameOverride
		if wrong := validation.IsDNS1123Subdomain(host); len(wrong) != 0 {
			return "", "", fmt.Errorf("pod HostnameOverride %q is not a valid DNS subdomain: %s", host, strings.Join(wrong, ";"))
		}
		host, err := shorten(p.Name, host)
		return host, "", err
	}
	host = p.Name
	if p.Spec.Hostname != "" {
		if wrong := validation.IsDNS1123Label(p.Spec.Hostname); len(wrong) != 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", p.Spec.Hostname, strings.Join(wrong, ";"))
		}
		host = p.Spec.Hostname
	}
	if host, err = shorten(p.Name, host); err != nil {
		return "", "", err
	}
	if p.Spec.Subdomain == "" {
		return host, "", nil
	}
	if wrong := validation.IsDNS1123Label(p.Spec.Subdomain); len(wrong) != 0 {
		return "", "", fmt.Errorf("pod Subdomain %q is not a valid DNS label: %s", p.Spec.Subdomain, strings.Join(wrong, ";"))
	}
	return host, fmt.Sprintf("%s.%s.svc.%s", p.Spec.Subdomain, p.Namespace, r.cfg.ClusterDomain), nil
}

// KernelHostname is the name p's processes see: the short one, unless the pod asks for the
// full one. A pod on the host's network has the host's and gets "".
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

// shorten cuts a name to what the kernel holds; the cut may not end in a separator.
func shorten(podName, host string) (string, error) {
	if len(host) <= maxHostname {
		return host, nil
	}
	short := strings.TrimRight(host[:maxHostname], "-.")
	if short == "" {
		return "", fmt.Errorf("hostname for pod %q was invalid: %q", podName, host)
	}
	return short, nil
}
