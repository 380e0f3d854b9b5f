package standalone

import (
	"fmt"
	"os"
	"path/filepath"

	"swiftlet/internal/checkpoint"
)

// Places says where each thing stands: what is worth keeping below root, what dies with
// the machine below run.
type Places struct {
	root, run, bundle string
}

// NewPlaces takes the folder that keeps state, the folder for sockets and the like, and
// the folder with the bundled programs.
func NewPlaces(root, run, bundle string) (Places, error) {
	for name, dir := range map[string]string{"root": root, "run": run, "bundle": bundle} {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			return Places{}, fmt.Errorf("place the %s folder: %q is not an absolute path below /", name, dir)
		}
	}
	// A shim's socket is named by a hash of 64 digits and must fit in 107 bytes.
	if len(run) > 40 {
		return Places{}, fmt.Errorf("place the run folder: %q is longer than 40 characters, too long for the runtime's sockets", run)
	}
	return Places{root: filepath.Clean(root), run: filepath.Clean(run), bundle: filepath.Clean(bundle)}, nil
}

// Socket is the runtime's endpoint.
func (p Places) Socket() string { return filepath.Join(p.run, "containerd.sock") }

// AgentConfig is the KubeletConfiguration the agent is started with.
func (p Places) AgentConfig() string { return filepath.Join(p.run, "kubelet.yaml") }

// AgentRoot is the agent's --root-dir.
func (p Places) AgentRoot() string { return filepath.Join(p.root, "kubelet") }

// AgentLog is where the agent's log goes while a table has the terminal.
func (p Places) AgentLog() string { return filepath.Join(p.root, "log", "swiftlet.log") }

// PodLogs holds the containers' output.
func (p Places) PodLogs() string { return filepath.Join(p.root, "log", "pods") }

func (p Places) lock() string             { return filepath.Join(p.run, "lock") }
func (p Places) before() string           { return filepath.Join(p.run, "before.json") }
func (p Places) containerdConfig() string { return filepath.Join(p.run, "containerd.toml") }
func (p Places) containerdState() string  { return filepath.Join(p.run, "containerd") }
func (p Places) containerdRoot() string   { return filepath.Join(p.root, "containerd") }
func (p Places) containerdLog() string    { return filepath.Join(p.root, "log", "containerd.log") }
func (p Places) shimSockets() string      { return filepath.Join(p.run, "s") }
func (p Places) runcState() string        { return filepath.Join(p.run, "runc") }
func (p Places) networkConf() string      { return filepath.Join(p.run, "cni", "net.d") }
func (p Places) addresses() string        { return filepath.Join(p.run, "cni", "addresses") }
func (p Places) pki(file string) string   { return filepath.Join(p.root, "pki", file) }
func (p Places) program(name string) string {
	return filepath.Join(p.bundle, name)
}

// make creates the folders. None is readable by others: pods' secrets are below them.
func (p Places) make() error {
	dirs := []string{
		p.root, p.run, p.AgentRoot(), p.PodLogs(), filepath.Dir(p.pki("x")), p.networkConf(), p.addresses(),
		p.containerdRoot(), p.containerdState(), p.shimSockets(), p.runcState(),
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("make the folders: %w", err)
		}
	}
	if err := os.Chmod(filepath.Dir(p.pki("x")), 0o700); err != nil {
		return fmt.Errorf("make the folders: %w", err)
	}
	return nil
}

// writeIfChanged replaces the file as a whole and reports whether it differed.
func writeIfChanged(file string, content []byte, mode os.FileMode) (changed bool, err error) {
	if old, err := os.ReadFile(file); err == nil && string(old) == string(content) {
		return false, nil
	}
	if err := checkpoint.Replace(file, content, mode); err != nil {
		return false, fmt.Errorf("write %s: %w", file, err)
	}
	return true, nil
}
