package bed

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// clusterServices leads to the API server, which does not maintain endpoints of its own here, and to CoreDNS.
const clusterServices = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kubernetes
  namespace: default
  labels: {kubernetes.io/service-name: kubernetes}
addressType: IPv4
endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]
ports: [{name: https, port: 6443, protocol: TCP}]
---
apiVersion: v1
kind: Endpoints
metadata:
  name: kubernetes
  namespace: default
  labels: {endpointslice.kubernetes.io/skip-mirror: "true"}
subsets:
- addresses: [{ip: %[1]q}]
  ports: [{name: https, port: 6443, protocol: TCP}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: ` + clusterDNS + `
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {kubernetes.io/service-name: kube-dns}
addressType: IPv4
endpoints: [{addresses: [%[2]q], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
`

const corefile = `.:53 {
  errors
  kubernetes ` + clusterDomain + ` in-addr.arpa ip6.arpa {
    kubeconfig /etc/kubernetes/coredns.kubeconfig
    pods insecure
    ttl 5
  }
  cache 5
  loadbalance
}
`

// StartServices starts kube-proxy, in nftables mode, and CoreDNS on the node, so that Services and their names
// work. They stop with the node, which must not have the rules of RouteAPIService.
func (b *Box) StartServices(ctx context.Context) error {
	bin := b.bed.bin
	dir, err := output(ctx, b.bed.progress, bin.Root, filepath.Join(bin.Root, "hack", "build-kubeadm.sh"))
	if err != nil {
		return err
	}
	manifest := filepath.Join(b.dir, "services.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, clusterServices, b.bed.slot.gateway(), b.Address()), 0o600); err != nil {
		return fmt.Errorf("start services: %w", err)
	}
	if _, err := b.bed.Kubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}
	c := b.bed.ControlPlane
	for name, groups := range map[string][]string{"kube-proxy": nil, "coredns": {"system:masters"}} {
		client, err := c.ca.client(b.name+"-"+name, "system:"+name, groups...)
		if err != nil {
			return err
		}
		if err := writeKubeconfig(b.Path("/etc/kubernetes/"+name+".kubeconfig"), c.Server, c.ca, client); err != nil {
			return err
		}
	}
	if err := b.writeFile("/etc/kubernetes/Corefile", []byte(corefile)); err != nil {
		return err
	}
	proxy, err := b.spawn("kube-proxy", filepath.Join(dir, "kube-proxy"), "--kubeconfig=/etc/kubernetes/kube-proxy.kubeconfig",
		"--proxy-mode=nftables", "--hostname-override="+b.name, "--cluster-cidr="+b.PodCIDR(),
		"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")
	if err != nil {
		return err
	}
	dns, err := b.spawn("coredns", filepath.Join(dir, "coredns"), "-conf", "/etc/kubernetes/Corefile")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := proxy.await(ctx, func(ctx context.Context) error {
		_, err := b.Exec(ctx, "curl", "-sSk", "-m", "2", "https://"+serviceAddress+"/readyz")
		return err
	}); err != nil {
		return err
	}
	return dns.await(ctx, b.resolveKubernetes)
}

// resolveKubernetes asks the node's CoreDNS for the Service kubernetes.
func (b *Box) resolveKubernetes(ctx context.Context) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(b.Address(), "53"))
	}}
	_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+clusterDomain+".")
	return err
}
