// Package flexvolume brings up volumes with programs that the node's owner put into a
// directory, one per kind of storage: the way before CSI to teach a node a new one.
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

// dirName is the directory below plugins that holds what drivers stage.
const dirName = "kubernetes.io/flexvolume"

// Config is fixed for the life of the agent.
type Config struct {
	// Dir holds the drivers: vendor/name is the program Dir/vendor~name/name.
	Dir string
	// RootDir is the kubelet's, /var/lib/kubelet.
	RootDir  string
	NodeName string
	// NodeAttaches says that no controller attaches volumes, so the node has to.
	NodeAttaches bool
}

// Mounter is what drivers leave to us.
type Mounter interface {
	Bind(fd int, target string) error
	Mounted(path string) (bool, error)
	Unmount(path string) error
}

// Disks makes and mounts file systems with the node's own tools.
type Disks interface {
	FormatAndMount(device, target, fileSystem string, options []string) error
	Resize(device, mountedAt string) error
}

// Deps is what drivers work with.
type Deps struct {
	Mounter Mounter
	Disks   Disks
	// Secret reads what a volume refers to.
	Secret func(ctx context.Context, namespace, name string) (*v1.Secret, error)
}

// Drivers are the programs in the directory. They come and go; nobody tells, so the directory is
// read when somebody needs to know.
type Drivers struct {
	cfg  Config
	deps Deps

	mu    sync.Mutex
	known map[string]*driver
}

// New starts nothing, and looks at nothing yet.
func New(cfg Config, deps Deps) *Drivers {
	return &Drivers{cfg: cfg, deps: deps, known: map[string]*driver{}}
}

// MakeDir makes the directory, where whoever installs a driver may expect it.
func (d *Drivers) MakeDir() error {
	if d.cfg.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(d.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make directory of FlexVolume drivers: %w", err)
	}
	return nil
}

// Kinds are the drivers that are there now, each a kind of its own. Nothing is run yet.
func (d *Drivers) Plugins() []plugin.Plugin {
	entries, err := os.ReadDir(d.cfg.Dir)
	if err != nil {
		return nil // no directory, no drivers
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var kinds []plugin.Plugin
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !isFolder(d.cfg.Dir, e) {
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

// isFolder follows links: a driver may be installed as one.
func isFolder(dir string, e os.DirEntry) bool {
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

// program is where a driver's program must be.
func (d *Drivers) program(name string) string {
	return filepath.Join(d.cfg.Dir, strings.ReplaceAll(name, "/", "~"), filepath.Base(name))
}
