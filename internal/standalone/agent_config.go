package standalone

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"swiftlet/internal/boundedio"
)

// resolvedConf lists the host's upstream name servers. With systemd-resolved, /etc/resolv.conf
// names only a loopback address, which pods cannot reach.
const resolvedConf = "/run/systemd/resolve/resolv.conf"

// resolvConf returns the file with the name servers of this machine.
func resolvConf() string {
	if _, err := os.Stat(resolvedConf); err == nil {
		return resolvedConf
	}
	return "/etc/resolv.conf"
}

// podPidsLimit is the default of processes per pod: enough for a database or a build, and a fork bomb leaves
// the node usable.
const podPidsLimit = 4096

// hasSeccomp reports whether the kernel has seccomp. Without it the runtime rejects containers with a profile.
func hasSeccomp() bool {
	status, err := boundedio.ReadFile("/proc/self/status", boundedio.Small)
	return err == nil && bytes.Contains(status, []byte("\nSeccomp:"))
}

// agentConfig is the KubeletConfiguration for a node without a control plane. The agent's API
// listens on loopback and accepts client certificates of our own CA. Without an API server the CA has issued
// one, and there is no further authorization. An API server issues certificates to others, so it is asked.
func agentConfig(cfg Config) ([]byte, error) {
	p := cfg.Paths
	driver, cgroupRoot := "cgroupfs", "/"+cgroupName
	if cfg.SystemdCgroups {
		driver, cgroupRoot = "systemd", "/"
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
		"podLogsDir":             p.PodLogs(),
		"resolvConf":             resolvConf(),
		"failCgroupV1":           false,
		"failSwapOn":             false,
		"makeIPTablesUtilChains": false, // they would stay after teardown
		"serializeImagePulls":    false,
		// Imported images cannot be pulled again.
		"imageGCHighThresholdPercent": 100,
		"volumePluginDir":             filepath.Join(p.root, "volume-plugins"),
		// Defaults for pods that do not choose; the owner's drop-ins may change them.
		"podPidsLimit":   podPidsLimit,
		"seccompDefault": hasSeccomp(),
	}
	if cfg.dnsAddress != "" {
		config["clusterDNS"], config["clusterDomain"] = []string{cfg.dnsAddress}, clusterDomain
	}
	if cfg.API != nil {
		delete(config, "staticPodPath")
		delete(config, "registerNode")
		delete(config, "authorization") // the default asks the API server
		config["authentication"].(map[string]any)["webhook"] = map[string]any{"enabled": true}
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("render agent configuration: %w", err)
	}
	return out, nil
}

// agentArgs are the flags for settings that have no field in the configuration file.
func agentArgs(cfg Config) []string {
	args := []string{
		"--config=" + cfg.Paths.AgentConfig(),
		"--root-dir=" + cfg.Paths.AgentRoot(),
		"--cert-dir=" + filepath.Dir(cfg.Paths.pki("x")),
		"--hostname-override=" + cfg.NodeName,
		"--require-create-for-upgrades",
	}
	if cfg.Page {
		args = append(args, "--enable-ui")
	}
	if cfg.API != nil {
		args = append(args, "--kubeconfig="+cfg.Paths.pki("kubelet.kubeconfig"))
	}
	if cfg.ConfigDir != "" && exists(cfg.ConfigDir) {
		args = append(args, "--config-dir="+cfg.ConfigDir)
	}
	return args
}
