package dra

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"swiftlet/internal/checkpoint"
)

// healthPath is where the reference kubelet keeps it.
func (m *Manager) healthPath() string { return filepath.Join(m.cfg.RootDir, "dra_health_state") }

// restoreHealth takes over what drivers told an earlier agent, so that pods do not show
// Unknown while drivers come back. It is good for as long as if they had told it now: they
// cannot help that nobody listened. A record that makes no sense is worth nothing.
func (m *Manager) restoreHealth() {
	text, err := os.ReadFile(m.healthPath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	said := map[string]driverHealth{}
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil {
		m.deps.Log.Warn("it is not known how devices were", "file", m.healthPath(), "err", err)
		return
	}
	now := m.deps.Clock.Now()
	for name, one := range said {
		for at, h := range one.Devices {
			h.LastUpdated = now
			one.Devices[at] = h
		}
		if len(one.Devices) > 0 {
			m.health[name] = one
		}
	}
}

// saveHealth writes down what drivers have said. Without it the next agent knows less.
func (m *Manager) saveHealth() {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.mu.Lock()
	text, err := json.Marshal(m.health)
	m.mu.Unlock()
	if err == nil {
		err = checkpoint.Replace(m.healthPath(), text, 0o600)
	}
	if err != nil {
		m.deps.Log.Error("health of devices is not written down", "err", err)
	}
}
