package dra

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"swiftlet/internal/checkpoint"
)

// healthPath is the reference kubelet's path.
func (m *Manager) healthPath() string { return filepath.Join(m.cfg.RootDir, "dra_health_state") }

// restoreHealth reads the reports of an earlier run of the agent, so that pods do not show
// Unknown until drivers report again. Their timeouts start now, because drivers could not report
// while the agent was down. It ignores a checkpoint that it cannot read.
func (m *Manager) restoreHealth() {
	text, err := os.ReadFile(m.healthPath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	reported := map[string]driverHealth{}
	if err == nil {
		err = json.Unmarshal(text, &reported)
	}
	if err != nil {
		m.deps.Log.Warn("dra: cannot read device health checkpoint", "path", m.healthPath(), "err", err)
		return
	}
	now := m.deps.Clock.Now()
	for name, driver := range reported {
		for key, h := range driver.Devices {
			h.LastUpdated = now
			driver.Devices[key] = h
		}
		if len(driver.Devices) > 0 {
			m.health[name] = driver
		}
	}
}

// saveHealth writes the reports to the checkpoint. A failure costs the next run of the agent
// the restored health only.
func (m *Manager) saveHealth() {
	m.saveMu.Lock()
	defer m.saveMu.Unlock()
	m.mu.Lock()
	text, err := json.Marshal(m.health)
	m.mu.Unlock()
	if err == nil {
		err = checkpoint.Replace(m.healthPath(), text, 0o600)
	}
	if err != nil {
		m.deps.Log.Error("dra: cannot write device health checkpoint", "path", m.healthPath(), "err", err)
	}
}
