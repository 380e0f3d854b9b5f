// Package quota measures the usage of volumes with project quotas of ext4 and XFS, which the kernel
// accounts, instead of a walk over their files. It sets no limits.
//
// The directory of a volume gets a project ID, which all files created below it inherit. The IDs
// are listed in /etc/projects and /etc/projid, where other programs on the machine look for used
// IDs, in the format of the reference kubelet: either agent can take over from the other.
package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"

	"swiftlet/internal/require"
)

// firstID is the first ID that the reference kubelet assigns.
const firstID = 1<<20 + 1

// maxTries bounds the search for an unused ID among those that are not listed.
const maxTries = 4096

// Config is fixed for the life of the agent.
type Config struct {
	// PodsDir has the pods' directories. Projects of directories below it belong to this agent.
	PodsDir string
	// ListsDir has the lists of projects; "" means /etc.
	ListsDir string
}

// Projects assigns projects to directories and reports their usage. Its methods may be called
// from any goroutine.
type Projects struct {
	cfg   Config
	clock clock.Clock
	log   *slog.Logger

	mu sync.Mutex
	// known are the tracked volumes by directory.
	known map[string]project
	// loggedUnsupported are the device numbers of file systems without project quotas that were
	// logged.
	loggedUnsupported map[uint64]bool
}

// project is the project of one volume.
type project struct {
	id uint32
	on fileSystem
}

// Usage is the space that files use.
type Usage struct{ Bytes, Inodes uint64 }

// New checks its arguments.
func New(cfg Config, clock clock.Clock, log *slog.Logger) (*Projects, error) {
	if !filepath.IsAbs(cfg.PodsDir) {
		return nil, errors.New("new project quotas: PodsDir must be an absolute path")
	}
	if err := require.Set("new project quotas", map[string]any{"clock": clock, "log": log}); err != nil {
		return nil, err
	}
	if cfg.ListsDir == "" {
		cfg.ListsDir = "/etc"
	}
	return &Projects{cfg: cfg, clock: clock, log: log, known: map[string]project{}, loggedUnsupported: map[uint64]bool{}}, nil
}

// Track assigns a project to the volume's directory, so that the kernel accounts its usage. If it
// cannot, it logs why, once per file system that has no project quotas. It creates the file marker
// when all files that the directory had before are in the project, too. Calls for one directory
// must not overlap. It is idempotent, also after a crash at any line.
func (p *Projects) Track(dir, marker string) {
	if _, ok := p.Used(dir); ok {
		return
	}
	counted, err := p.count(dir, marker)
	var unsupported *unsupportedError
	switch {
	case errors.As(err, &unsupported):
		p.logUnsupported(unsupported, dir)
	case err != nil:
		p.log.Warn("project quota: failed to track volume, its usage is measured by walks", "path", dir, "err", err)
	default:
		p.mu.Lock()
		p.known[dir] = counted
		p.mu.Unlock()
	}
}

func (p *Projects) logUnsupported(unsupported *unsupportedError, dir string) {
	p.mu.Lock()
	logged := p.loggedUnsupported[unsupported.device]
	p.loggedUnsupported[unsupported.device] = true
	p.mu.Unlock()
	if !logged {
		p.log.Info("project quota: not supported by file system, usage is measured by walks", "path", dir, "err", unsupported.why)
	}
}

func (p *Projects) count(dir, marker string) (project, error) {
	f, err := openDir(dir)
	if err != nil {
		return project{}, fmt.Errorf("open volume: %w", err)
	}
	defer f.Close()
	on, err := accounting(f)
	if err != nil {
		return project{}, err
	}
	id, err := p.assign(f, on)
	if err != nil {
		return project{}, err
	}
	if _, err := os.Lstat(marker); err == nil {
		return project{id, on}, nil
	}
	if err := setProjectBelow(f, id); err != nil {
		return project{}, err
	}
	if err := os.WriteFile(marker, nil, 0o640); err != nil {
		return project{}, fmt.Errorf("create marker of tracked volume: %w", err)
	}
	return project{id, on}, nil
}

// assign makes the directory the root of a project. It lists the ID before it sets it.
func (p *Projects) assign(f *os.File, on fileSystem) (uint32, error) {
	l, err := openLists(p.cfg.ListsDir, p.clock)
	if err != nil {
		return 0, err
	}
	defer l.close()
	id, err := p.chooseID(l, f, on)
	if err != nil {
		return 0, err
	}
	l.add(id, f.Name())
	if err := l.save(); err != nil {
		return 0, err
	}
	return id, setFileProject(f, id, true)
}

// chooseID returns the ID of the directory: the listed one, the one it has, or an unused one.
func (p *Projects) chooseID(l *lists, f *os.File, on fileSystem) (uint32, error) {
	if id, ok := l.idOf(f.Name()); ok {
		return id, nil
	}
	own, err := ownProject(f)
	if err != nil {
		return 0, err
	}
	if own >= firstID && !l.taken(own) {
		return own, nil // the lists were lost
	}
	tries := 0
	for id := uint32(firstID); tries < maxTries; id++ {
		if l.taken(id) {
			continue
		}
		tries++
		used, err := on.usage(f, id)
		if err != nil {
			return 0, err
		}
		if used == (Usage{}) {
			return id, nil
		}
	}
	return 0, fmt.Errorf("find an unused project ID: the first %d that are not listed are all in use", maxTries)
}

// ownProject is the project of the directory, 0 if it is inherited from the parent.
func ownProject(f *os.File) (uint32, error) {
	id, err := idOf(f)
	if err != nil {
		return 0, err
	}
	above, err := openDir(filepath.Dir(f.Name()))
	if err != nil {
		return 0, fmt.Errorf("open parent directory of volume: %w", err)
	}
	defer above.Close()
	if inherited, err := idOf(above); err != nil || inherited == id {
		return 0, err
	}
	return id, nil
}

// Used is the usage of the volume's directory; false if it is not tracked.
func (p *Projects) Used(dir string) (Usage, bool) {
	p.mu.Lock()
	counted, known := p.known[dir]
	p.mu.Unlock()
	if !known {
		return Usage{}, false
	}
	used, err := counted.usage(dir)
	if err != nil {
		p.log.Debug("project quota: failed to read usage", "path", dir, "err", err)
	}
	return used, err == nil
}

func (c project) usage(dir string) (Usage, error) {
	f, err := openDir(dir)
	if err != nil {
		return Usage{}, err
	}
	defer f.Close()
	id, err := idOf(f)
	if err != nil {
		return Usage{}, err
	}
	if id != c.id {
		return Usage{}, fmt.Errorf("directory is in project %d, want %d", id, c.id)
	}
	return c.on.usage(f, id)
}

// ReleaseStale removes the IDs of directories that no longer exist from the lists, also those of an
// earlier agent. Call it after directories were removed and when the agent starts.
func (p *Projects) ReleaseStale() {
	p.mu.Lock()
	for dir := range p.known {
		if gone(dir) {
			delete(p.known, dir)
		}
	}
	p.mu.Unlock()
	if err := p.releaseStale(); err != nil {
		p.log.Warn("project quota: failed to release IDs of removed volumes", "err", err)
	}
}

func (p *Projects) releaseStale() error {
	stale := func(dir string) bool { return within(dir, p.cfg.PodsDir) && gone(dir) }
	if clean, err := nothingStale(p.cfg.ListsDir, stale); err != nil || clean {
		return err
	}
	l, err := openLists(p.cfg.ListsDir, p.clock)
	if err != nil {
		return err
	}
	defer l.close()
	released := l.removeStale(stale)
	if err := l.save(); err != nil {
		return err
	}
	return p.clearLimits(released)
}

// clearLimits removes the limits that the reference kubelet sets on projects; the file system would
// keep them for ever.
func (p *Projects) clearLimits(ids []uint32) error {
	f, err := openDir(p.cfg.PodsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	on, err := accounting(f)
	var unsupported *unsupportedError
	if errors.As(err, &unsupported) {
		return nil
	}
	for _, id := range ids {
		err = errors.Join(err, on.clearLimits(f, id))
	}
	return err
}

func gone(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}
