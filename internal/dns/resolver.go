package dns

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is fixed for the life of the agent.
type Config struct {
	// ClusterDNS are the cluster's name servers; without any, pods use the node's.
	ClusterDNS []string
	// NoCluster: there is no cluster, so a missing ClusterDNS is not worth a warning.
	NoCluster bool
	// ClusterDomain is the cluster's domain, "" for none.
	ClusterDomain string
	// ResolvConf is the path of the node's resolv.conf, "" for none.
	ResolvConf string
	// NodeIPs decide the loopback address that pods get as name server if ResolvConf is "".
	NodeIPs []netip.Addr
	// HostsFile is the path of the node's hosts file; "" means /etc/hosts.
	HostsFile string
}

// Deps are the Resolver's dependencies.
type Deps struct {
	Events pod.Events
	// Node is the object of node events.
	Node *v1.ObjectReference
	Log  *slog.Logger
}

// Resolver computes the DNS configuration of pods. It is safe for concurrent use.
type Resolver struct {
	cfg  Config
	deps Deps
}

// New validates its arguments.
func New(cfg Config, deps Deps) (*Resolver, error) {
	for _, server := range cfg.ClusterDNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return nil, fmt.Errorf("new dns resolver: parse ClusterDNS: %w", err)
		}
	}
	if err := require.Set("new dns resolver", map[string]any{"Events": deps.Events, "Node": deps.Node, "Log": deps.Log}); err != nil {
		return nil, err
	}
	if cfg.HostsFile == "" {
		cfg.HostsFile = "/etc/hosts"
	}
	return &Resolver{cfg: cfg, deps: deps}, nil
}

// PodDNS returns p's resolver configuration for the runtime, and records warnings as events.
func (r *Resolver) PodDNS(p *v1.Pod) (*runtimeapi.DNSConfig, error) {
	conf, warnings, err := r.Resolve(p)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.deps.Events.Eventf(pod.EventRef(p, ""), v1.EventTypeWarning, w.Reason, "%s", w.Message)
		if w.Reason == reasonMissing {
			r.deps.Events.Eventf(r.deps.Node, v1.EventTypeWarning, w.Reason, "%s", missingClusterDNS)
		}
	}
	return &runtimeapi.DNSConfig{Servers: conf.Servers, Searches: conf.Searches, Options: conf.Options}, nil
}

const (
	reasonMissing     = "MissingClusterDNS"
	missingClusterDNS = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`
)

// Resolve returns p's resolver configuration and warnings about it.
func (r *Resolver) Resolve(p *v1.Pod) (ResolvConf, []Warning, error) {
	node, err := readResolvConf(r.cfg.ResolvConf)
	if err != nil {
		return ResolvConf{}, nil, err
	}
	conf, warnings := r.byPolicy(p, node)
	if p.Spec.DNSConfig != nil {
		conf = merge(conf, p.Spec.DNSConfig)
	}
	conf, limitWarnings := applyLimits(conf)
	return conf, append(warnings, limitWarnings...), nil
}

// byPolicy is the configuration by the pod's DNS policy, without its dnsConfig.
func (r *Resolver) byPolicy(p *v1.Pod, node ResolvConf) (ResolvConf, []Warning) {
	switch p.Spec.DNSPolicy {
	case v1.DNSNone:
		return ResolvConf{}, nil
	case v1.DNSDefault:
		return r.nodeConf(node), nil
	case v1.DNSClusterFirst:
		if p.Spec.HostNetwork {
			return r.nodeConf(node), nil
		}
	}
	// ClusterFirst, ClusterFirstWithHostNet, and unknown newer policies.
	if len(r.cfg.ClusterDNS) == 0 && r.cfg.NoCluster {
		return r.nodeConf(node), nil
	}
	if len(r.cfg.ClusterDNS) == 0 {
		message := fmt.Sprintf("pod: %q. %s", pod.RefOf(p), missingClusterDNS)
		return r.nodeConf(node), []Warning{{reasonMissing, message}}
	}
	return ResolvConf{
		Servers:  slices.Clone(r.cfg.ClusterDNS),
		Searches: r.clusterSearches(p.Namespace, node.Searches),
		Options:  []string{"ndots:5"},
	}, nil
}

func (r *Resolver) clusterSearches(namespace string, node []string) []string {
	if r.cfg.ClusterDomain == "" {
		return node
	}
	services := "svc." + r.cfg.ClusterDomain
	return unique(append([]string{namespace + "." + services, services, r.cfg.ClusterDomain}, node...))
}

// nodeConf is the node's configuration. Without a resolv.conf, it is the loopback address: an
// empty one would make the runtime use its default.
func (r *Resolver) nodeConf(node ResolvConf) ResolvConf {
	if r.cfg.ResolvConf != "" {
		return node
	}
	node.Searches = []string{"."}
	for _, ip := range r.cfg.NodeIPs {
		if ip.Is6() && !ip.Is4In6() {
			node.Servers = append(node.Servers, "::1")
		} else {
			node.Servers = append(node.Servers, "127.0.0.1")
		}
	}
	if len(node.Servers) == 0 {
		node.Servers = []string{"127.0.0.1"}
	}
	return node
}

// merge adds the pod's dnsConfig to conf.
func merge(conf ResolvConf, own *v1.PodDNSConfig) ResolvConf {
	merged := ResolvConf{
		Servers:  unique(append(slices.Clone(conf.Servers), own.Nameservers...)),
		Searches: unique(append(slices.Clone(conf.Searches), own.Searches...)),
	}
	at := map[string]int{}
	for _, o := range conf.Options {
		merged.Options = setOption(merged.Options, at, o)
	}
	for _, o := range own.Options {
		option := o.Name
		if o.Value != nil && *o.Value != "" {
			option += ":" + *o.Value
		}
		merged.Options = setOption(merged.Options, at, option)
	}
	return merged
}

// unique keeps the first of equal strings.
func unique(all []string) []string {
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(s string) bool {
		dup := seen[s]
		seen[s] = true
		return dup
	})
}
