// Package flexvolume mounts FlexVolumes with driver programs that are installed in a directory of the
// node.
package flexvolume

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
)

// dirName is the directory of staged volumes below plugins.
const dirName = "kubernetes.io/flexvolume"

// Config is fixed for the life of the agent.
type Config struct {
	// Dir is the directory of drivers: vendor/name is the program Dir/vendor~name/name.
	Dir string
	// RootDir is the kubelet's, /var/lib/kubelet.
	RootDir  string
	NodeName string
	// NodeAttaches is set if no controller attaches volumes, so that the node has to.
	NodeAttaches bool
}

// Mounter is the part of mounts.Kernel that drivers use.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
}

// Disks formats, mounts and resizes file systems with the node's programs.
type Disks interface {
	FormatAndMount(device, target, fileSystem string, options []string) error
	Resize(device, mountedAt string) error
}

// Deps are the dependencies of drivers.
type Deps struct {
	Mounter Mounter
	Disks   Disks
	// Secret reads the Secret of a volume.
	Secret func(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Drivers are the programs in the directory. They can be installed and removed at any time, so the
// directory is read on every use.
type Drivers struct {
	cfg  Config
	deps Deps

	mu    sync.Mutex
	known map[string]*driver
}

// New returns the drivers. It does not read the directory yet.
func New(cfg Config, deps Deps) *Drivers {
	return &Drivers{cfg: cfg, deps: deps, known: map[string]*driver{}}
}

// MakeDir creates the directory, which installers of drivers expect.
func (d *Drivers) MakeDir() error {
	if d.cfg.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(d.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("create directory of FlexVolume drivers: %w", err)
	}
	return nil
}

// Plugins are the installed drivers. It runs none of them.
func (d *Drivers) Plugins() []plugin.Plugin {
	entries, err := os.ReadDir(d.cfg.Dir)
	if err != nil {
		return nil // no directory, no drivers
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var kinds []plugin.Plugin
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !isDir(d.cfg.Dir, e) {
			continue
		}
		name := strings.ReplaceAll(e.Name(), "~", "/")
		if d.known[name] == nil {
			d.known[name] = &driver{Drivers: d, name: name}
		}
		kinds = append(kinds, d.known[name])
	}
	return kinds
}

// DriverName is the driver that a FlexVolume names, "" for a volume of another kind.
func DriverName(s plugin.Spec) string {
	switch {
	case s.PV != nil && s.PV.Spec.FlexVolume != nil:
		return s.PV.Spec.FlexVolume.Driver
	case s.PV == nil && s.Volume.FlexVolume != nil:
		return s.Volume.FlexVolume.Driver
	}
	return ""
}

// isDir follows symbolic links: a driver may be installed as one.
func isDir(dir string, e os.DirEntry) bool {
	if e.IsDir() {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.IsDir()
}

// MissingError is the error for a driver that is not installed.
func (d *Drivers) MissingError(name string) error {
	return fmt.Errorf("the node has no FlexVolume driver %q: there is no program %s", name, d.program(name))
}

// program is the path of a driver's program.
func (d *Drivers) program(name string) string {
	return filepath.Join(d.cfg.Dir, strings.ReplaceAll(name, "/", "~"), filepath.Base(name))
}
