package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swiftlet/internal/config"
	"swiftlet/internal/preflight"
)

// startable is a configuration with which a kubelet starts on any host.
const startable = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///none/r.sock
featureGates: {KubeletInUserNamespace: true}
`

// TestCheckFindsWhatWouldNotStart: `swiftlet check` exits with 1 and says why, and a kubelet refuses to
// start with the same words. It does so before it connects to the runtime.
func TestCheckFindsWhatWouldNotStart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for name, tc := range map[string]struct {
		config string // line 7 and following
		flags  string
		want   string // FILE is the configuration file, DIR its directory
	}{
		"unknown CPU manager option":      {config: "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpu-only: 'true'}", want: "FILE:8: cpuManagerPolicyOptions.full-pcpu-only: is not an option of the CPU manager; did you mean full-pcpus-only?"},
		"CPU manager option of a gate":    {config: "cpuManagerPolicyOptions: {align-by-socket: 'true'}", want: "FILE:7: cpuManagerPolicyOptions.align-by-socket: needs feature gate CPUManagerPolicyAlphaOptions"},
		"unknown topology manager option": {config: "topologyManagerPolicyOptions: {prefer-closest: 'true'}", want: "FILE:7: topologyManagerPolicyOptions.prefer-closest: is not an option of the topology manager"},
		"sysctl of the host":              {config: "allowedUnsafeSysctls: [net.core.somaxconn, vm.swappiness]", want: `FILE:7: allowedUnsafeSysctls: "vm.swappiness" is not namespaced`},
		"missing client CA":               {config: "authentication: {x509: {clientCAFile: /none/ca.crt}}", want: "FILE:7: authentication.x509.clientCAFile: load client CA: open /none/ca.crt: no such file or directory"},
		"missing serving certificate":     {config: "tlsCertFile: /none/node.crt\ntlsPrivateKeyFile: /none/node.key", want: "FILE:7: tlsCertFile: load serving certificate /none/node.crt"},
		"too much memory reserved":        {config: "systemReserved: {memory: 1000Ti}", want: "FILE:7: systemReserved.memory: kubeReserved, systemReserved and evictionHard together reserve more memory than the capacity of this host"},
		"no CPU reserved":                 {config: "cpuManagerPolicy: static", want: "FILE:7: cpuManagerPolicy: static needs a reserved CPU"},
		"reserved CPU is offline":         {config: "cpuManagerPolicy: static\nreservedSystemCPUs: '4000'", want: "FILE:8: reservedSystemCPUs: no CPU 4000 online"},
		"no memory reserved":              {config: "memoryManagerPolicy: Static", want: "FILE:7: memoryManagerPolicy: Static needs reservedMemory"},
		"runtime endpoint":                {flags: "--container-runtime-endpoint=tcp://127.0.0.1:1", want: "--container-runtime-endpoint: containerRuntimeEndpoint: dial runtime: endpoint"},
		"port in use":                     {config: fmt.Sprintf("address: 127.0.0.1\nport: %d", port), want: fmt.Sprintf("FILE:8: port: %d is in use by swiftlet", port)},
		"missing kubeconfig":              {flags: "--kubeconfig=/none/kubeconfig", want: "--kubeconfig: read kubeconfig /none/kubeconfig: "},
		"missing bootstrap kubeconfig":    {flags: "--kubeconfig=/none/kubeconfig --bootstrap-kubeconfig=/none/bootstrap", want: "--bootstrap-kubeconfig: request client certificate"},
		"two addresses of one family":     {flags: "--node-ip=10.0.0.1,10.0.0.2", want: `--node-ip: "10.0.0.1,10.0.0.2" must contain either a single IP or a dual-stack pair of IPs`},
		"root directory is a file":        {flags: "--root-dir=/dev/null/kubelet", want: "--root-dir: "},
		"missing credential plugins":      {flags: "--image-credential-provider-bin-dir=/none --image-credential-provider-config=/none/plugins.yaml", want: "--image-credential-provider-config: read credential plugins: stat /none/plugins.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "kubelet.yaml")
			if err := os.WriteFile(file, []byte(startable+tc.config+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--config=" + file, "--root-dir=" + dir, "--cert-dir=" + dir}, strings.Fields(tc.flags)...)
			want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(tc.want)
			for _, command := range []string{"check", "kubelet"} {
				var out, errOut strings.Builder
				code := run(t.Context(), append([]string{"swiftlet", command}, args...), &out, &errOut)
				if code != 1 || !strings.Contains(errOut.String(), want) {
					t.Errorf("swiftlet %s exits with %d, want 1 and %q:\n%s", command, code, want, errOut.String())
				}
			}
		})
	}
}

// TestCheckIgnoredAddresses: an address that cannot be parsed is an error of the check. The kubelet starts
// without it, as the reference kubelet does.
func TestCheckIgnoredAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(startable+"clusterDNS: [10.0.0.10, dns.local]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config=" + file, "--node-ip=10.0.0.256"}
	_, err := config.Load(args)
	cfg, lenientErr := config.LoadLenient(args)
	if lenientErr != nil {
		t.Fatal(lenientErr)
	}
	for _, want := range []string{file + `:7: clusterDNS[1]: %s"dns.local" is not an IP address`, `--node-ip: %s"10.0.0.256" is not an IP address`} {
		if strict := fmt.Sprintf(want, ""); err == nil || !strings.Contains(err.Error(), strict) {
			t.Errorf("check: %v, want %s", err, strict)
		}
		if ignored := fmt.Sprintf(want, "ignored, "); !strings.Contains(strings.Join(cfg.Notices, "\n"), ignored) {
			t.Errorf("the kubelet logs %q, want %s", cfg.Notices, ignored)
		}
	}
}

// TestCheckConfigOnly: a configuration for another host is checked without this host.
func TestCheckConfigOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(file, []byte(startable+"authentication: {x509: {clientCAFile: /none/ca.crt}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, code := range map[string]int{"": 1, " --config-only": 0, " --config-only --topology-manager-policy-options=x=y": 1} {
		var out, errOut strings.Builder
		if got := run(t.Context(), strings.Fields("swiftlet check --config="+file+flags), &out, &errOut); got != code {
			t.Errorf("check%s exits with %d, want %d:\n%s", flags, got, code, errOut.String())
		}
	}
}

// TestStartsWithDamagedStateFiles: a damaged state file is moved aside when the kubelet starts.
func TestStartsWithDamagedStateFiles(t *testing.T) {
	dir := t.TempDir()
	cfg, err := config.Load([]string{"--root-dir=" + dir, "--cert-dir=" + dir, "--fail-cgroupv1=false", "--fail-swap-on=false", "--port=1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu_manager_state", "dra_manager_state", "allocated_pods_state", "actuated_pods_state"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("{damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := preflight.Run(cfg, preflight.Options{}); err != nil {
			t.Errorf("with a damaged %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
