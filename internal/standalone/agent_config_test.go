package standalone

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"swiftlet/internal/config"
)

// TestAgentConfigLimitsPods: pods have a seccomp profile and a limit of processes, unless the owner of the node
// overrides that.
func TestAgentConfigLimitsPods(t *testing.T) {
	paths := Paths{root: t.TempDir(), run: t.TempDir(), bundle: "/b"}
	cfg := Config{Paths: paths, Manifests: "/m", NodeName: "node", PodCIDR: netip.MustParsePrefix("10.88.0.0/16"), ConfigDir: filepath.Join(t.TempDir(), "conf.d")}
	content, err := agentConfig(cfg)
	if err == nil {
		err = os.WriteFile(paths.AgentConfig(), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(agentArgs(cfg))
	if err != nil || *got.Kubelet.PodPidsLimit != 4096 || !*got.Kubelet.SeccompDefault {
		t.Fatalf("%v: %d processes, seccomp %t", err, *got.Kubelet.PodPidsLimit, *got.Kubelet.SeccompDefault)
	}
	drop := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\npodPidsLimit: 77\nseccompDefault: false\n"
	if err := errors.Join(os.Mkdir(cfg.ConfigDir, 0o755), os.WriteFile(filepath.Join(cfg.ConfigDir, "10.conf"), []byte(drop), 0o644)); err != nil {
		t.Fatal(err)
	}
	got, err = config.Load(agentArgs(cfg))
	if err != nil || *got.Kubelet.PodPidsLimit != 77 || *got.Kubelet.SeccompDefault {
		t.Errorf("overridden: %v, %d processes, seccomp %t", err, *got.Kubelet.PodPidsLimit, *got.Kubelet.SeccompDefault)
	}
}

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
