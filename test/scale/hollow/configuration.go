package hollow

import (
	"fmt"
	"os"
)

// Image is the image that every node has.
const Image = "registry.example/app:1"

// configuration replaces what does not exist on a simulated machine, and otherwise keeps the defaults. All
// nodes have one disk, so its use is no reason to evict pods.
const configuration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s
podLogsDir: %[2]s
containerRuntimeEndpoint: unix://%[3]s
maxPods: 2000
cgroupsPerQOS: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
failSwapOn: false
resolvConf: ""
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
address: %[6]s
healthzPort: 0
tlsCertFile: %[4]s
tlsPrivateKeyFile: %[5]s
rotateCertificates: false
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", imagefs.available: "0%%"}
imageGCHighThresholdPercent: 100
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}}
authorization: {mode: Webhook}
`

// Serving is the serving certificate, which all nodes share.
type Serving struct{ Certificate, Key string }

// Write makes the directory of a node with its configuration and identity. The agent serves on the given
// address.
func (f Files) Write(kubeconfig []byte, address string, serving Serving) error {
	for _, dir := range []string{f.Root(), f.manifests(), f.podLogs(), f.certificates()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("write files of node: %w", err)
		}
	}
	if err := os.WriteFile(f.Kubeconfig(), kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write files of node: %w", err)
	}
	text := fmt.Sprintf(configuration, f.manifests(), f.podLogs(), f.socket(), serving.Certificate, serving.Key, address)
	if err := os.WriteFile(f.Configuration(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write files of node: %w", err)
	}
	return nil
}
