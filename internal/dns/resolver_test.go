package dns

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"swiftlet/test/cputime"
)

// eventRecorder records events as "kind/name reason message".
type eventRecorder []string

func (r *eventRecorder) Eventf(o runtime.Object, _, reason, format string, args ...any) {
	ref := o.(*v1.ObjectReference)
	*r = append(*r, ref.Kind+"/"+ref.Name+" "+reason+" "+fmt.Sprintf(format, args...))
}

func newResolver(t *testing.T, cfg Config) (*Resolver, *eventRecorder) {
	t.Helper()
	events := &eventRecorder{}
	r, err := New(cfg, Deps{Events: events, Node: &v1.ObjectReference{Kind: "Node", Name: "n"}, Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return r, events
}

func nodeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newPod(edit func(*v1.PodSpec)) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace, p.UID = "web", "ns", "u"
	p.Spec.DNSPolicy = v1.DNSClusterFirst
	edit(&p.Spec)
	return p
}

func TestResolve(t *testing.T) {
	const node = "nameserver 8.8.8.8\nsearch corp.example\noptions rotate\n"
	two := "2"
	for name, c := range map[string]struct {
		cfg      Config
		noFile   bool
		edit     func(*v1.PodSpec)
		want     ResolvConf
		warnings []Warning
	}{
		"cluster first": {
			cfg:  Config{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local"},
			want: ResolvConf{[]string{"10.96.0.10"}, []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"}, []string{"ndots:5"}},
		},
		"no cluster domain": {
			cfg:  Config{ClusterDNS: []string{"10.96.0.10"}},
			want: ResolvConf{[]string{"10.96.0.10"}, []string{"corp.example"}, []string{"ndots:5"}},
		},
		"cluster first in host network uses node configuration": {
			cfg:  Config{ClusterDNS: []string{"10.96.0.10"}},
			edit: func(s *v1.PodSpec) { s.HostNetwork = true },
			want: ResolvConf{[]string{"8.8.8.8"}, []string{"corp.example"}, []string{"rotate"}},
		},
		"cluster first with host net": {
			cfg:  Config{ClusterDNS: []string{"10.96.0.10"}},
			edit: func(s *v1.PodSpec) { s.HostNetwork = true; s.DNSPolicy = v1.DNSClusterFirstWithHostNet },
			want: ResolvConf{[]string{"10.96.0.10"}, []string{"corp.example"}, []string{"ndots:5"}},
		},
		"no cluster DNS": {
			want:     ResolvConf{[]string{"8.8.8.8"}, []string{"corp.example"}, []string{"rotate"}},
			warnings: []Warning{{"MissingClusterDNS", `pod: "web_ns(u)". ` + missingClusterDNS}},
		},
		"policy None with dnsConfig": {
			edit: func(s *v1.PodSpec) {
				s.DNSPolicy = v1.DNSNone
				s.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1"}, Searches: []string{"a", "a"},
					Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: &two}, {Name: "debug"}}}
			},
			want: ResolvConf{[]string{"1.1.1.1"}, []string{"a"}, []string{"ndots:2", "debug"}},
		},
		"option of dnsConfig replaces default": {
			cfg: Config{ClusterDNS: []string{"10.96.0.10"}},
			edit: func(s *v1.PodSpec) {
				s.DNSConfig = &v1.PodDNSConfig{Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: &two}}}
			},
			want: ResolvConf{[]string{"10.96.0.10"}, []string{"corp.example"}, []string{"ndots:2"}},
		},
		"no resolv.conf gives loopback servers": {
			noFile: true,
			cfg:    Config{NodeIPs: []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.1")}},
			edit:   func(s *v1.PodSpec) { s.DNSPolicy = v1.DNSDefault },
			want:   ResolvConf{[]string{"::1", "127.0.0.1"}, []string{"."}, nil},
		},
		"too many servers": {
			edit: func(s *v1.PodSpec) {
				s.DNSPolicy = v1.DNSNone
				s.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"}}
			},
			want: ResolvConf{[]string{"1.1.1.1", "1.1.1.2", "1.1.1.3"}, nil, nil},
			warnings: []Warning{{"DNSConfigForming",
				"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 1.1.1.2 1.1.1.3"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.noFile {
				c.cfg.ResolvConf = nodeFile(t, node)
			}
			if c.edit == nil {
				c.edit = func(*v1.PodSpec) {}
			}
			r, _ := newResolver(t, c.cfg)
			got, warnings, err := r.Resolve(newPod(c.edit))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}

func TestLimitSearches(t *testing.T) {
	domains := func(n, length int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%02d", i)+strings.Repeat("x", length-2))
		}
		return all
	}
	for name, c := range map[string]struct {
		in   []string
		kept int
		cut  bool
	}{
		"all fit":                    {domains(32, 10), 32, false},
		"one too many":               {domains(33, 10), 32, true},
		"one too long":               {append(domains(2, 10), domains(1, 254)...), 2, true},
		"2048 characters fit":        {append(domains(8, 252), "abcdefghijklmnopqrstuvw"), 9, false}, // 8*252+7+1+23 = 2047
		"2049 characters do not fit": {append(domains(8, 252), "abcdefghijklmnopqrstuvwxy"), 8, true},
	} {
		t.Run(name, func(t *testing.T) {
			kept, cut := limitSearches(c.in)
			if len(kept) != c.kept || cut != c.cut {
				t.Errorf("kept %d cut %v, want %d %v", len(kept), cut, c.kept, c.cut)
			}
		})
	}
}

func TestPodDNSRecordsEventsOnPodAndNode(t *testing.T) {
	r, events := newResolver(t, Config{ResolvConf: nodeFile(t, "nameserver 8.8.8.8\n")})
	if _, err := r.PodDNS(newPod(func(*v1.PodSpec) {})); err != nil {
		t.Fatal(err)
	}
	want := eventRecorder{
		`Pod/web MissingClusterDNS pod: "web_ns(u)". ` + missingClusterDNS,
		"Node/n MissingClusterDNS " + missingClusterDNS,
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEventOnNode(t *testing.T) {
	thirty := "search" + strings.Repeat(" d", 30) + "\n"
	for name, c := range map[string]struct{ domain, file, want string }{
		"fits":                              {"", thirty, ""},
		"too many with the cluster domains": {"cluster.local", thirty, "contains search line consisting of more than 29 domains!"},
		"one domain too long":               {"", "search " + strings.Repeat("x", 254), "search path which length is more than allowed 253 chars!"},
		"search line too long":              {"", "search" + strings.Repeat(" "+strings.Repeat("x", 250), 9), "which length is more than allowed 2048 chars!"},
		"nameserver without address":        {"", "nameserver", "nameserver list is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			r, events := newResolver(t, Config{ClusterDomain: c.domain, ResolvConf: nodeFile(t, c.file)})
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(*events, "\n")
			if c.want == "" && got == "" {
				return
			}
			if c.want == "" || !strings.HasPrefix(got, "Node/n CheckLimitsForResolvConf ") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNewRejects(t *testing.T) {
	if _, err := New(Config{ClusterDNS: []string{"kube-dns"}}, Deps{}); err == nil {
		t.Error("a host name as ClusterDNS is accepted")
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("missing dependencies are accepted")
	}
}

// The API limits the number of servers and searches in a dnsConfig, but not that of options.
func TestManyOptions(t *testing.T) {
	r, _ := newResolver(t, Config{ResolvConf: nodeFile(t, "options rotate\n")})
	const n = 50_000
	p := newPod(func(s *v1.PodSpec) {
		s.DNSPolicy, s.DNSConfig = v1.DNSDefault, &v1.PodDNSConfig{}
		for i := range n {
			s.DNSConfig.Options = append(s.DNSConfig.Options, v1.PodDNSConfigOption{Name: fmt.Sprintf("o%06d", i)})
		}
	})
	cputime.AtMost(t, 2*time.Second, func() {
		if conf, _, err := r.Resolve(p); err != nil || len(conf.Options) != n+1 {
			t.Errorf("%d options, %v", len(conf.Options), err)
		}
	})
}
