package simulate

import (
	"fmt"
	"os"
	"path/filepath"

	"flag"
	"log/slog"
)

// seedFlag runs one seed and prints its trace.
var seedFlag = flag.Int64("seed", -1, "run this seed only, and print its trace")

// logLevel includes details only where a trace is printed.
func logLevel() slog.Level {
	if *seedFlag >= 0 {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

const kubeletConfiguration = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
podLogsDir: %[1]s/log/pods
containerRuntimeEndpoint: unix:///simulated.sock
cgroupsPerQOS: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
failSwapOn: false
resolvConf: ""
tlsCertFile: %[2]s
tlsPrivateKeyFile: %[3]s
rotateCertificates: false
evictionHard: {nodefs.available: "0%%", imagefs.available: "0%%"}
imageGCHighThresholdPercent: 100
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerLogMaxSize: "-1"
nodeLeaseDurationSeconds: 160
nodeStatusUpdateFrequency: 1m
imageMaximumGCAge: 0s
localStorageCapacityIsolation: true
`

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://api.invalid"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
`

// writeConfiguration writes the files that the agent is started with.
func writeConfiguration(n *node) error {
	text := fmt.Sprintf(kubeletConfiguration, n.live(), certificateFile, keyFile)
	if err := os.WriteFile(filepath.Join(n.base, "config.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.base, "kubeconfig"), []byte(kubeconfig), 0o600)
}
