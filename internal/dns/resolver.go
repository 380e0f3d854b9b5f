package dns

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
)

// Config says what the node offers its pods.
type Config struct {
	// ClusterDNS are the cluster's name servers; none means pods use the node's.
	ClusterDNS []string
	// NoCluster: there is no cluster whose names pods could miss, so nobody is warned.
	NoCluster bool
	// ClusterDomain is the cluster's own domain, "" for none.
	ClusterDomain string
	// ResolvConf is the node's file, "" for no settings from the node.
	ResolvConf string
	// NodeIPs decide the loopback address a pod gets where ResolvConf is "".
	NodeIPs []netip.Addr
	// HostsFile is the node's own hosts file; "" means /etc/hosts.
	HostsFile string
}

// Deps are a Resolver's collaborators.
type Deps struct {
	Events pod.Events
	// Node is what events about the node are attached to.
	Node *v1.ObjectReference
	Log  *slog.Logger
}

// Resolver answers for one node. It is safe for concurrent use.
type Resolver struct {
	cfg  Config
	deps Deps
}

// New validates cfg.
func New(cfg Config, deps Deps) (*Resolver, error) {
	for _, server := range cfg.ClusterDNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return nil, fmt.Errorf("configure dns: cluster DNS server: %w", err)
		}
	}
	if deps.Events == nil || deps.Log == nil || deps.Node == nil {
		return nil, errors.New("configure dns: events, node and log are required")
	}
	if cfg.HostsFile == "" {
		cfg.HostsFile = "/etc/hosts"
	}
	return &Resolver{cfg: cfg, deps: deps}, nil
}

// PodDNS is p's resolver configuration as the runtime takes it. What had to be cut is
// told as events.
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

// Resolve is p's resolver configuration and what the user should hear about it.
func (r *Resolver) Resolve(p *v1.Pod) (Resolv, []Warning, error) {
	node, err := readResolvConf(r.cfg.ResolvConf)
	if err != nil {
		return Resolv{}, nil, err
	}
	conf, warnings := r.byPolicy(p, node)
	if p.Spec.DNSConfig != nil {
		conf = merge(conf, p.Spec.DNSConfig)
	}
	conf, cut := fit(conf)
	return conf, append(warnings, cut...), nil
}

// byPolicy is the configuration before the pod's own additions.
func (r *Resolver) byPolicy(p *v1.Pod, node Resolv) (Resolv, []Warning) {
	switch p.Spec.DNSPolicy {
	case v1.DNSNone:
		return Resolv{}, nil
	case v1.DNSDefault:
		return r.nodeSettings(node), nil
	case v1.DNSClusterFirst:
		if p.Spec.HostNetwork {
			return r.nodeSettings(node), nil
		}
	}
	// ClusterFirst, ClusterFirstWithHostNet, and anything newer than this agent.
	if len(r.cfg.ClusterDNS) == 0 && r.cfg.NoCluster {
		return r.nodeSettings(node), nil
	}
	if len(r.cfg.ClusterDNS) == 0 {
		message := fmt.Sprintf("pod: %q. %s", pod.RefOf(p), missingClusterDNS)
		return r.nodeSettings(node), []Warning{{reasonMissing, message}}
	}
	return Resolv{
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

// nodeSettings are the node's own. With no resolv.conf at all the pod must not fall back
// to the runtime's idea of one, so it is pointed at itself.
func (r *Resolver) nodeSettings(node Resolv) Resolv {
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

// merge adds the pod's own servers, domains and options to conf.
func merge(conf Resolv, own *v1.PodDNSConfig) Resolv {
	merged := Resolv{
		Servers:  unique(append(slices.Clone(conf.Servers), own.Nameservers...)),
		Searches: unique(append(slices.Clone(conf.Searches), own.Searches...)),
		Options:  slices.Clone(conf.Options),
	}
	for _, o := range own.Options {
		option := o.Name
		if o.Value != nil && *o.Value != "" {
			option += ":" + *o.Value
		}
		merged.Options = setOption(merged.Options, option)
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
