package standalone

import (
	"net/netip"
	"os"
	"testing"

	"swiftlet/internal/config"
)

// The agent must accept the configuration written for it, and must allow no anonymous access.
func TestAgentConfigAllowsNoAnonymousAccess(t *testing.T) {
	paths := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}
	for _, systemd := range []bool{false, true} {
		cfg := Config{
			Paths: paths, Manifests: "/m", NodeName: "node", Port: 10250, HealthzPort: 10248,
			PodCIDR: netip.MustParsePrefix("10.88.0.0/16"), SystemdCgroups: systemd,
		}
		content, err := agentConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(paths.AgentConfig(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Load(agentArgs(cfg))
		if err != nil {
			t.Fatalf("%v\n%s", err, content)
		}
		k := got.Kubelet
		if *k.Authentication.Anonymous.Enabled || k.ReadOnlyPort != 0 || k.Address != "127.0.0.1" || *k.HealthzPort != 10248 {
			t.Errorf("anonymous %v, read-only port %d, address %s, healthz port %d: want no anonymous access, on loopback only",
				*k.Authentication.Anonymous.Enabled, k.ReadOnlyPort, k.Address, *k.HealthzPort)
		}
		if k.Authentication.X509.ClientCAFile != paths.pki("ca.crt") || k.StaticPodPath != "/m" {
			t.Errorf("client CA %q, manifests %q", k.Authentication.X509.ClientCAFile, k.StaticPodPath)
		}
		if want := map[bool]string{false: "/swiftlet", true: "/"}[systemd]; k.CgroupRoot != want {
			t.Errorf("cgroup root %q, want %q", k.CgroupRoot, want)
		}
	}
}
