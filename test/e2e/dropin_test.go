package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"swiftlet/test/bed"
)

// bedSettings are what distributions configure for their own hosts and a box does not have: cgroup v2,
// their kernel settings, and their container runtime's socket.
const bedSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
`

// makeFiles makes the certificates that the configurations refer to.
const makeFiles = `set -e
pki=/etc/kubernetes/pki
mkdir -p /var/lib/rancher/k3s/agent /etc/srv/kubernetes/pki
cp $pki/ca.crt /var/lib/rancher/k3s/agent/client-ca.crt
cp $pki/ca.crt /etc/srv/kubernetes/pki/ca-certificates.crt
cp $pki/node.crt /var/lib/rancher/k3s/agent/serving-kubelet.crt
cp $pki/node.key /var/lib/rancher/k3s/agent/serving-kubelet.key
`

// TestDistributions: the check passes the kubelet configurations of distributions as they are, and a node
// that is configured so, except for what differs in a box, becomes ready.
func TestDistributions(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "distributions")
	if _, err := node.Exec(t.Context(), "sh", "-c", makeFiles); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/dropin/*.txtar")
	if err != nil || len(files) != 5 {
		t.Fatalf("configurations %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			flags := installDistribution(t, node, file)
			check(t, node, append([]string{"--config-only"}, flags...))
			flags = append(flags, overrideDir(t, node, flags)...)
			check(t, node, append([]string{"--kubeconfig=/etc/kubernetes/kubelet.kubeconfig"}, flags...))
			if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Flags: flags}); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := node.StopKubelet(); err != nil {
					t.Error(err)
				}
			}()
			if err := node.WaitReady(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// installDistribution writes the files of a distribution to the node and returns the kubelet's flags.
func installDistribution(t *testing.T, node *bed.Box, file string) (flags []string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == "flags" {
			flags = strings.Fields(strings.NewReplacer("NAME", node.Name(), "=IP", "="+node.Address()).Replace(string(f.Data)))
			continue
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o755
		}
		writeInside(t, node, f.Name, f.Data, mode)
	}
	return flags
}

// overrideDir writes bedSettings as a drop-in, and returns the flag for its directory unless there is one.
func overrideDir(t *testing.T, node *bed.Box, flags []string) []string {
	t.Helper()
	dir, missing := "/etc/bed.conf.d", []string{"--config-dir=/etc/bed.conf.d"}
	for _, flag := range flags {
		if own, ok := strings.CutPrefix(flag, "--config-dir="); ok {
			dir, missing = own, nil
		}
	}
	writeInside(t, node, filepath.Join(dir, "99-bed.conf"), []byte(bedSettings), 0o644)
	return missing
}

func writeInside(t *testing.T, node *bed.Box, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if _, err := node.Exec(t.Context(), "mkdir", "-p", filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(node.Inside(path), data, mode); err != nil {
		t.Fatal(err)
	}
}

// check runs `swiftlet check` on the node.
func check(t *testing.T, node *bed.Box, args []string) {
	t.Helper()
	if _, errOut, err := node.Swiftlet(t.Context(), append([]string{"check"}, args...)...); err != nil {
		t.Errorf("swiftlet check %s: %v:\n%s", strings.Join(args, " "), err, errOut)
	}
}
