package cgroup

import (
	"fmt"
	"path"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/systemd"
)

// systemdWriter is the systemd driver. Cgroups are slice units, which it creates and limits over
// D-Bus.
type systemdWriter struct{ Hierarchy }

func (w systemdWriter) create(n cgroupName, r Resources) error {
	m, config, err := w.manager(n, r)
	if err != nil {
		return err
	}
	if err := m.Apply(-1); err != nil {
		return fmt.Errorf("create slice %s: %w", config.Name, err)
	}
	if err := m.Set(config.Resources); err != nil {
		return fmt.Errorf("set slice %s: %w", config.Name, err)
	}
	return nil
}

func (w systemdWriter) set(n cgroupName, r Resources) error {
	m, config, err := w.manager(n, r)
	if err != nil {
		return err
	}
	if err := m.Set(config.Resources); err != nil {
		return fmt.Errorf("set slice %s: %w", config.Name, err)
	}
	return nil
}

// stopUnit stops the slice. systemd would otherwise keep the unit after its cgroup is removed.
func (w systemdWriter) stopUnit(n cgroupName) error {
	m, config, err := w.manager(n, Resources{})
	if err != nil {
		return err
	}
	if err := m.Destroy(); err != nil {
		return fmt.Errorf("stop slice %s: %w", config.Name, err)
	}
	return nil
}

func (w systemdWriter) manager(n cgroupName, r Resources) (cgroups.Manager, *cgroups.Cgroup, error) {
	if !systemd.IsRunningSystemd() {
		return nil, nil, fmt.Errorf("use the systemd cgroup driver: systemd is not running")
	}
	dir, unit := path.Split(n.path(Systemd))
	parent := "-" + sliceSuffix // the root slice
	if dir != "/" {
		parent = path.Base(dir)
	}
	config := &cgroups.Cgroup{Systemd: true, Parent: parent, Name: unit, Resources: w.resources(r)}
	var m cgroups.Manager
	var err error
	if w.Version == 2 {
		m, err = systemd.NewUnifiedManager(config, "")
	} else {
		m, err = systemd.NewLegacyManager(config, nil)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("use slice %s: %w", unit, err)
	}
	return m, config, nil
}
