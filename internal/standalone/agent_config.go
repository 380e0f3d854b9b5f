package standalone

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// resolvedConf lists the machine's real name servers where /etc/resolv.conf names only
// systemd-resolved on loopback, which pods cannot reach.
const resolvedConf = "/run/systemd/resolve/resolv.conf"

// agentConfig is the KubeletConfiguration for a node without a control plane. Its API is
// on loopback and open to holders of a certificate of our own CA, of which there is one:
// that is the whole authorization.
func agentConfig(cfg Config) ([]byte, error) {
	p := cfg.Places
	driver, cgroupRoot := "cgroupfs", "/"+cgroupName
	if cfg.SystemdCgroups {
		driver, cgroupRoot = "systemd", "/"
	}
	resolvConf := "/etc/resolv.conf"
	if _, err := os.Stat(resolvedConf); err == nil {
		resolvConf = resolvedConf
	}
	config := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"staticPodPath":            cfg.Manifests,
		"containerRuntimeEndpoint": "unix://" + p.Socket(),
		"address":                  "127.0.0.1",
		"port":                     cfg.Port,
		"healthzBindAddress":       "127.0.0.1",
		"healthzPort":              cfg.HealthzPort,
		"readOnlyPort":             0,
		"tlsCertFile":              p.pki("serving.crt"),
		"tlsPrivateKeyFile":        p.pki("serving.key"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": false},
			"x509":      map[string]any{"clientCAFile": p.pki("ca.crt")},
		},
		"authorization":          map[string]any{"mode": "AlwaysAllow"},
		"registerNode":           false,
		"cgroupDriver":           driver,
		"cgroupRoot":             cgroupRoot,
		"podCIDR":                cfg.PodCIDR.Masked().String(),
		"podLogsDir":             p.PodLogs(),
		"resolvConf":             resolvConf,
		"failSwapOn":             false,
		"makeIPTablesUtilChains": false, // nothing of ours outlives us
		"serializeImagePulls":    false,
		// Images that were imported cannot be pulled again.
		"imageGCHighThresholdPercent": 100,
		"volumePluginDir":             filepath.Join(p.root, "volume-plugins"),
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("render the agent's configuration: %w", err)
	}
	return out, nil
}

// agentArgs is the command line for what the configuration file cannot say.
func agentArgs(cfg Config) []string {
	return []string{
		"--config=" + cfg.Places.AgentConfig(),
		"--root-dir=" + cfg.Places.AgentRoot(),
		"--cert-dir=" + filepath.Dir(cfg.Places.pki("x")),
		"--hostname-override=" + cfg.NodeName,
	}
}
