package e2e

import (
	"strings"
	"testing"
	"time"

	"swiftlet/test/bed"
)

// TestCheckPredictsRefusedStart: a kubelet does not start with these settings, and `swiftlet check` says so
// before.
func TestCheckPredictsRefusedStart(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "refused")
	for name, tc := range map[string]struct {
		config string
		flags  []string
		want   string // in the output of the check
	}{
		"CPU manager option":      {config: `{cpuManagerPolicy: static, reservedSystemCPUs: "0", cpuManagerPolicyOptions: {full-pcpus: "true"}}`, want: "cpuManagerPolicyOptions.full-pcpus: is not an option"},
		"topology manager option": {config: `{topologyManagerPolicy: best-effort, topologyManagerPolicyOptions: {closest: "true"}}`, want: "topologyManagerPolicyOptions.closest: is not an option"},
		"sysctl of the host":      {config: `{allowedUnsafeSysctls: [vm.swappiness]}`, want: "is not namespaced"},
		"client CA":               {config: `{authentication: {x509: {clientCAFile: /none/ca.crt}}}`, want: "authentication.x509.clientCAFile: load client CA: open /none/ca.crt"},
		"reserved memory":         {config: `{systemReserved: {memory: 1000Ti}}`, want: "systemReserved.memory: "},
		"node IPs of one family":  {flags: []string{"--node-ip=10.0.0.1,10.0.0.2"}, want: "--node-ip: "},
		"kubeconfig":              {flags: []string{"--kubeconfig=/none/kubeconfig"}, want: "--kubeconfig: read kubeconfig /none/kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: tc.config, Flags: tc.flags}); err != nil {
				t.Fatal(err)
			}
			if err := node.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "exited") {
				t.Errorf("the kubelet does not exit: %v", err)
				_ = node.StopKubelet()
			}
			t.Logf("refused after %s", time.Since(began).Round(time.Millisecond))
			args := append([]string{"check", "--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig=/etc/kubernetes/kubelet.kubeconfig"}, tc.flags...)
			_, errOut, err := node.Swiftlet(t.Context(), args...)
			if err == nil || !strings.Contains(errOut, tc.want) {
				t.Errorf("swiftlet check: %v, want %q:\n%s", err, tc.want, errOut)
			}
			t.Logf("swiftlet check: %s", errOut)
		})
	}
}
