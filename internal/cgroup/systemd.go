package cgroup

import (
	"fmt"
	"path"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/systemd"
)

// sliceUnits is the systemd driver: groups are slice units, made and bounded over D-Bus.
type sliceUnits struct{ Hierarchy }

func (s sliceUnits) create(n name, r Resources) error {
	m, config, err := s.manager(n, r)
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

func (s sliceUnits) set(n name, r Resources) error {
	m, config, err := s.manager(n, r)
	if err != nil {
		return err
	}
	if err := m.Set(config.Resources); err != nil {
		return fmt.Errorf("set slice %s: %w", config.Name, err)
	}
	return nil
}

// forget stops the unit; systemd would otherwise keep it, and its name, for ever.
func (s sliceUnits) forget(n name) error {
	m, config, err := s.manager(n, Resources{})
	if err != nil {
		return err
	}
	if err := m.Destroy(); err != nil {
		return fmt.Errorf("stop slice %s: %w", config.Name, err)
	}
	return nil
}

func (s sliceUnits) manager(n name, r Resources) (cgroups.Manager, *cgroups.Cgroup, error) {
	if !systemd.IsRunningSystemd() {
		return nil, nil, fmt.Errorf("use the systemd cgroup driver: systemd is not running")
	}
	dir, unit := path.Split(n.path(Systemd))
	parent := "-" + slice // the root slice
	if dir != "/" {
		parent = path.Base(dir)
	}
	config := &cgroups.Cgroup{Systemd: true, Parent: parent, Name: unit, Resources: s.resources(r)}
	var m cgroups.Manager
	var err error
	if s.Version == 2 {
		m, err = systemd.NewUnifiedManager(config, "")
	} else {
		m, err = systemd.NewLegacyManager(config, nil)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("use slice %s: %w", unit, err)
	}
	return m, config, nil
}
