package standalone

import (
	"fmt"
	"os"
	"path/filepath"

	"swiftlet/internal/checkpoint"
)

// Paths has the path of every file: persistent ones below root, those that a reboot may remove
// below run.
type Paths struct {
	root, run, bundle string
}

// NewPaths takes the directory for persistent state, the directory for sockets and runtime
// state, and the directory of the bundled programs. It checks them and creates nothing.
func NewPaths(root, run, bundle string) (Paths, error) {
	for name, dir := range map[string]string{"root": root, "run": run, "bundle": bundle} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			return Paths{}, fmt.Errorf("check %s directory: %q is not an absolute path below /", name, dir)
		}
	}
	// A shim's socket has a name of 64 hex digits, and its path must fit in 107 bytes.
	if len(run) > 40 {
		return Paths{}, fmt.Errorf("check run directory: %q is longer than 40 characters, too long for the runtime's sockets", run)
	}
	return Paths{root: filepath.Clean(root), run: filepath.Clean(run), bundle: filepath.Clean(bundle)}, nil
}

// Socket is the runtime's endpoint.
func (p Paths) Socket() string { return filepath.Join(p.run, "containerd.sock") }

// AgentConfig is the agent's KubeletConfiguration file.
func (p Paths) AgentConfig() string { return filepath.Join(p.run, "kubelet.yaml") }

// AgentRoot is the agent's --root-dir.
func (p Paths) AgentRoot() string { return filepath.Join(p.root, "kubelet") }

// AgentLog is the agent's log file while the terminal shows the pod table.
func (p Paths) AgentLog() string { return filepath.Join(p.root, "log", "swiftlet.log") }

// PodLogs is the directory of the container logs.
func (p Paths) PodLogs() string { return filepath.Join(p.root, "log", "pods") }

// KubeconfigName is the name of the administrator's kubeconfig in the root directory.
const KubeconfigName = "admin.kubeconfig"

// Kubeconfig is the administrator's.
func (p Paths) Kubeconfig() string { return filepath.Join(p.root, KubeconfigName) }

// ErrorLog is where an instance in the background writes why it has ended.
func (p Paths) ErrorLog() string { return filepath.Join(p.root, "log", "swiftlet.err") }

func (p Paths) apiData() string          { return filepath.Join(p.root, "api") }
func (p Paths) volumes() string          { return filepath.Join(p.root, "volumes") }
func (p Paths) apiLog() string           { return filepath.Join(p.root, "log", "apiserver.log") }
func (p Paths) dnsLog() string           { return filepath.Join(p.root, "log", "dns.log") }
func (p Paths) lock() string             { return filepath.Join(p.run, "lock") }
func (p Paths) hostState() string        { return filepath.Join(p.run, "before.json") }
func (p Paths) containerdConfig() string { return filepath.Join(p.run, "containerd.toml") }
func (p Paths) containerdState() string  { return filepath.Join(p.run, "containerd") }
func (p Paths) containerdRoot() string   { return filepath.Join(p.root, "containerd") }
func (p Paths) containerdLog() string    { return filepath.Join(p.root, "log", "containerd.log") }
func (p Paths) shimSockets() string      { return filepath.Join(p.run, "s") }
func (p Paths) runcState() string        { return filepath.Join(p.run, "runc") }
func (p Paths) networkConf() string      { return filepath.Join(p.run, "cni", "net.d") }
func (p Paths) addresses() string        { return filepath.Join(p.run, "cni", "addresses") }
func (p Paths) registries() string       { return filepath.Join(p.run, "registries") }
func (p Paths) pki(file string) string   { return filepath.Join(p.root, "pki", file) }
func (p Paths) program(name string) string {
	return filepath.Join(p.bundle, name)
}

// makeDirs creates the directories. Only root can list them: secrets of pods are below them.
func (p Paths) makeDirs() error {
	dirs := []string{
		p.root, p.run, p.AgentRoot(), p.PodLogs(), filepath.Dir(p.pki("x")), p.networkConf(), p.addresses(),
		p.containerdRoot(), p.containerdState(), p.shimSockets(), p.runcState(),
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("make directories: %w", err)
		}
	}
	if err := os.Chmod(filepath.Dir(p.pki("x")), 0o700); err != nil {
		return fmt.Errorf("make directories: %w", err)
	}
	return nil
}

// writeIfChanged atomically replaces the file if its content differs, and reports whether it did.
func writeIfChanged(file string, content []byte, mode os.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(file); err == nil && string(old) == string(content) {
		return false, nil
	}
	if err := checkpoint.Replace(file, content, mode); err != nil {
		return false, fmt.Errorf("write %s: %w", file, err)
	}
	return true, nil
}
