// Package quota has the kernel count what volumes hold, by project quotas of ext4 and XFS, so
// that nobody has to walk through their files. Nothing is limited by them.
//
// A volume's folder gets a project id of its own, which all that is made below it inherits.
// Ids are listed in /etc/projects and /etc/projid, for whoever else gives out ids on the
// machine, and in the words of the reference kubelet: either agent goes on with the other's.
package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// firstID is where the reference kubelet begins to give out ids.
const firstID = 1<<20 + 1

// mostTries bounds the search for an id that nobody uses, beside those that are listed.
const mostTries = 4096

// Config is fixed for the life of the agent.
type Config struct {
	// PodsDir holds the pods' folders: the projects of folders below it are this agent's.
	PodsDir string
	// ListsDir holds the lists of projects; "" means /etc.
	ListsDir string
}

// Projects gives out projects and tells what is in them. It may be used by many at once.
type Projects struct {
	cfg Config
	log *slog.Logger

	mu sync.Mutex
	// known are the volumes that are counted, by folder.
	known map[string]project
	// silent are the file systems, by device number, that were said not to count.
	silent map[uint64]bool
}

// project is what counts a volume.
type project struct {
	id uint32
	on fileSystem
}

// Usage is what files occupy.
type Usage struct{ Bytes, Inodes uint64 }

// New checks its arguments.
func New(cfg Config, log *slog.Logger) (*Projects, error) {
	if !filepath.IsAbs(cfg.PodsDir) || log == nil {
		return nil, errors.New("make projects: an absolute PodsDir and a log are needed")
	}
	if cfg.ListsDir == "" {
		cfg.ListsDir = "/etc"
	}
	return &Projects{cfg: cfg, log: log, known: map[string]project{}, silent: map[uint64]bool{}}, nil
}

// Count has the kernel count what is in the volume's folder from now on, if it can; if not,
// the log says so, once per file system that does not count at all. The file note is made
// when all that was in the folder before is counted, too. Calls for one folder must not
// overlap; one that is repeated, also after a crash at any line, changes nothing.
func (p *Projects) Count(dir, note string) {
	if _, ok := p.Used(dir); ok {
		return
	}
	counted, err := p.count(dir, note)
	var cannot *cannotCount
	switch {
	case errors.As(err, &cannot):
		p.tellSilent(cannot, dir)
	case err != nil:
		p.log.Warn("a volume's files are counted by walks: no project quota for it", "dir", dir, "err", err)
	default:
		p.mu.Lock()
		p.known[dir] = counted
		p.mu.Unlock()
	}
}

func (p *Projects) tellSilent(cannot *cannotCount, dir string) {
	p.mu.Lock()
	told := p.silent[cannot.device]
	p.silent[cannot.device] = true
	p.mu.Unlock()
	if !told {
		p.log.Info("files of volumes are counted by walks: the file system has no project quotas", "dir", dir, "err", cannot.why)
	}
}

func (p *Projects) count(dir, note string) (project, error) {
	f, err := openDir(dir)
	if err != nil {
		return project{}, fmt.Errorf("open the volume: %w", err)
	}
	defer f.Close()
	on, err := accounting(f)
	if err != nil {
		return project{}, err
	}
	id, err := p.give(f, on)
	if err != nil {
		return project{}, err
	}
	if _, err := os.Lstat(note); err == nil {
		return project{id, on}, nil
	}
	if err := includeBelow(f, id); err != nil {
		return project{}, err
	}
	if err := os.WriteFile(note, nil, 0o640); err != nil {
		return project{}, fmt.Errorf("note that all of the volume is counted: %w", err)
	}
	return project{id, on}, nil
}

// give makes the folder the root of a project. The id is listed before it is used.
func (p *Projects) give(f *os.File, on fileSystem) (uint32, error) {
	l, err := openLists(p.cfg.ListsDir)
	if err != nil {
		return 0, err
	}
	defer l.close()
	id, err := p.choose(l, f, on)
	if err != nil {
		return 0, err
	}
	l.add(id, f.Name())
	if err := l.save(); err != nil {
		return 0, err
	}
	return id, include(f, id, true)
}

// choose finds the folder's id: the one it is listed with, the one it has, or a new one.
func (p *Projects) choose(l *lists, f *os.File, on fileSystem) (uint32, error) {
	if id, ok := l.idOf(f.Name()); ok {
		return id, nil
	}
	own, err := ownID(f)
	if err != nil {
		return 0, err
	}
	if own >= firstID && !l.taken(own) {
		return own, nil // the lists were lost
	}
	tries := 0
	for id := uint32(firstID); tries < mostTries; id++ {
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
	return 0, fmt.Errorf("find an unused project id: the first %d that are not listed are all in use", mostTries)
}

// ownID is the folder's project, 0 for one that it merely inherited.
func ownID(f *os.File) (uint32, error) {
	id, err := idOf(f)
	if err != nil {
		return 0, err
	}
	above, err := openDir(filepath.Dir(f.Name()))
	if err != nil {
		return 0, fmt.Errorf("open the folder of the volume: %w", err)
	}
	defer above.Close()
	if inherited, err := idOf(above); err != nil || inherited == id {
		return 0, err
	}
	return id, nil
}

// Used tells what is in the volume's folder; false where the kernel does not count it.
func (p *Projects) Used(dir string) (Usage, bool) {
	p.mu.Lock()
	counted, known := p.known[dir]
	p.mu.Unlock()
	if !known {
		return Usage{}, false
	}
	used, err := counted.usage(dir)
	if err != nil {
		p.log.Debug("a project quota is not known", "dir", dir, "err", err)
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
		return Usage{}, fmt.Errorf("the folder is in project %d, not in %d", id, c.id)
	}
	return c.on.usage(f, id)
}

// Tidy takes back the ids of volumes whose folders are gone, whichever agent made them. Call
// it after folders were removed, and when the agent starts.
func (p *Projects) Tidy() {
	p.mu.Lock()
	for dir := range p.known {
		if gone(dir) {
			delete(p.known, dir)
		}
	}
	p.mu.Unlock()
	if err := p.tidy(); err != nil {
		p.log.Warn("project ids of volumes that are gone are still listed", "err", err)
	}
}

func (p *Projects) tidy() error {
	left := func(dir string) bool { return within(dir, p.cfg.PodsDir) && gone(dir) }
	if clean, err := tidyAlready(p.cfg.ListsDir, left); err != nil || clean {
		return err
	}
	l, err := openLists(p.cfg.ListsDir)
	if err != nil {
		return err
	}
	defer l.close()
	freed := l.drop(left)
	if err := l.save(); err != nil {
		return err
	}
	return p.unlimit(freed)
}

// unlimit takes away the limits, if only in name, that the reference kubelet gives projects:
// they would be kept by the file system for ever.
func (p *Projects) unlimit(ids []uint32) error {
	f, err := openDir(p.cfg.PodsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	on, err := accounting(f)
	var cannot *cannotCount
	if errors.As(err, &cannot) {
		return nil
	}
	for _, id := range ids {
		err = errors.Join(err, on.unlimit(f, id))
	}
	return err
}

func gone(dir string) bool {
	_, err := os.Lstat(dir)
	return errors.Is(err, fs.ErrNotExist)
}
