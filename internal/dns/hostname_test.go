package dns

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestHostname(t *testing.T) {
	yes := true
	override := "other.example"
	bad := "Not_A_Name"
	for name, c := range map[string]struct {
		podName              string
		spec                 v1.PodSpec
		host, domain, kernel string
		err, kernelErr       string
	}{
		"pod name":           {podName: "web", host: "web", kernel: "web"},
		"hostname":           {podName: "web", spec: v1.PodSpec{Hostname: "alpha"}, host: "alpha", kernel: "alpha"},
		"subdomain":          {podName: "web", spec: v1.PodSpec{Hostname: "alpha", Subdomain: "web"}, host: "alpha", domain: "web.ns.svc.cluster.local", kernel: "alpha"},
		"full name":          {podName: "web", spec: v1.PodSpec{Hostname: "alpha", Subdomain: "web", SetHostnameAsFQDN: &yes}, host: "alpha", domain: "web.ns.svc.cluster.local", kernel: "alpha.web.ns.svc.cluster.local"},
		"full name too long": {podName: strings.Repeat("a", 60), spec: v1.PodSpec{Subdomain: "web", SetHostnameAsFQDN: &yes}, host: strings.Repeat("a", 60), domain: "web.ns.svc.cluster.local", kernelErr: "is too long (64 characters is the max, 85 characters requested)"},
		"cut at 63":          {podName: strings.Repeat("a", 62) + "-bcd", host: strings.Repeat("a", 62), kernel: strings.Repeat("a", 62)},
		"override":           {podName: "web", spec: v1.PodSpec{HostnameOverride: &override, Hostname: "alpha", Subdomain: "web"}, host: override, kernel: override},
		"bad override":       {podName: "web", spec: v1.PodSpec{HostnameOverride: &bad}, err: `pod HostnameOverride "Not_A_Name" is not a valid DNS subdomain`},
		"bad hostname":       {podName: "web", spec: v1.PodSpec{Hostname: "a.b"}, err: `pod Hostname "a.b" is not a valid DNS label`},
		"bad subdomain":      {podName: "web", spec: v1.PodSpec{Subdomain: "a.b"}, err: `pod Subdomain "a.b" is not a valid DNS label`},
		"host network":       {podName: "web", spec: v1.PodSpec{HostNetwork: true}, host: "web", kernel: ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, Config{ClusterDomain: "cluster.local"})
			p := &v1.Pod{Spec: c.spec}
			p.Name, p.Namespace = c.podName, "ns"
			host, domain, err := r.Hostname(p)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || host != c.host || domain != c.domain {
				t.Errorf("got %q %q %v, want %q %q", host, domain, err, c.host, c.domain)
			}
			kernel, err := r.KernelHostname(p)
			if c.kernelErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.kernelErr) {
					t.Errorf("kernel error %v, want %q", err, c.kernelErr)
				}
			} else if err != nil || kernel != c.kernel {
				t.Errorf("kernel name %q %v, want %q", kernel, err, c.kernel)
			}
		})
	}
}
