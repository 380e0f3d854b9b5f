package quota

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
)

// The lists of projects have lines ID:DIRECTORY and NAME:ID.
const (
	projectsFile = "projects"
	namesFile    = "projid"
)

// lists is both of them, locked against concurrent changes.
type lists struct{ projects, names *list }

// list is one of the files. Lines of other programs are not changed.
type list struct {
	file    *os.File
	lines   []string
	changed bool
}

// lockTimeout bounds the wait for each list. Every process that can read a list can lock it.
const (
	lockTimeout = 5 * time.Second
	lockRetry   = 10 * time.Millisecond
)

// openLists opens and locks the lists, and creates missing ones. While another process has them locked, it waits for
// a short time.
func openLists(dir string, clock clock.Clock) (*lists, error) {
	projects, err := openList(filepath.Join(dir, projectsFile), clock)
	if err != nil {
		return nil, err
	}
	names, err := openList(filepath.Join(dir, namesFile), clock)
	if err != nil {
		projects.file.Close()
		return nil, err
	}
	return &lists{projects, names}, nil
}

func (l *lists) close() {
	l.projects.file.Close()
	l.names.file.Close()
}

// openList locks the file. It retries if the file was replaced before it had the lock.
func openList(path string, clock clock.Clock) (*list, error) {
	until := clock.Now().Add(lockTimeout)
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, fmt.Errorf("open list of projects: %w", err)
		}
		current, err := lock(f, clock, until)
		if err == nil && current {
			var l *list
			if l, err = read(f); err == nil {
				return l, nil
			}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// lock locks the file and reports whether it still is the one at its path.
func lock(f *os.File, clock clock.Clock, until time.Time) (current bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) // one that waits could not be ended
		if !errors.Is(err, unix.EINTR) && (!errors.Is(err, unix.EWOULDBLOCK) || clock.Now().After(until)) {
			break
		}
		clock.Sleep(lockRetry)
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	held, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if !held.Mode().IsRegular() {
		return false, fmt.Errorf("lock %s: not a regular file", f.Name())
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(held, named), nil
}

func read(f *os.File) (*list, error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read list of projects: %w", err)
	}
	return &list{file: f, lines: splitLines(string(text))}, nil
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// parseProject parses a line of the list of directories.
func parseProject(line string) (id uint32, dir string, ok bool) {
	number, dir, _ := strings.Cut(line, ":")
	id, ok = parseID(number)
	return id, dir, ok
}

// parseName parses a line of the list of names.
func parseName(line string) (name string, id uint32, ok bool) {
	name, number, _ := strings.Cut(line, ":")
	id, ok = parseID(number)
	return name, id, ok
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err == nil
}

// nameOf is the reference kubelet's name for a project.
func nameOf(id uint32) string { return fmt.Sprintf("volume%d", id) }

// idOf is the listed project of a directory.
func (l *lists) idOf(dir string) (uint32, bool) {
	for _, line := range l.projects.lines {
		if id, listed, ok := parseProject(line); ok && listed == dir && id != 0 {
			return id, true
		}
	}
	return 0, false
}

// taken reports whether the ID is listed.
func (l *lists) taken(id uint32) bool {
	return slices.ContainsFunc(l.projects.lines, func(line string) bool { got, _, ok := parseProject(line); return ok && got == id }) ||
		slices.ContainsFunc(l.names.lines, func(line string) bool { _, got, ok := parseName(line); return ok && got == id })
}

// add lists the directory with the ID, unless it is listed.
func (l *lists) add(id uint32, dir string) {
	l.projects.add(fmt.Sprintf("%d:%s", id, dir))
	named := func(line string) bool { _, got, ok := parseName(line); return ok && got == id }
	if !slices.ContainsFunc(l.names.lines, named) {
		l.names.add(fmt.Sprintf("%s:%d", nameOf(id), id))
	}
}

// removeStale removes stale directories, then the names of IDs without a directory, and returns
// those IDs. An agent that was killed may have left a name without a directory.
func (l *lists) removeStale(stale func(dir string) bool) []uint32 {
	l.projects.removeLines(func(line string) bool { _, dir, ok := parseProject(line); return ok && stale(dir) })
	used := map[uint32]bool{}
	for _, line := range l.projects.lines {
		id, _, _ := parseProject(line)
		used[id] = true
	}
	var released []uint32
	l.names.removeLines(func(line string) bool {
		name, id, ok := parseName(line)
		free := ok && id >= firstID && name == nameOf(id) && !used[id]
		if free {
			released = append(released, id)
		}
		return free
	})
	return released
}

func (l *list) add(line string) {
	if !slices.Contains(l.lines, line) {
		l.lines, l.changed = append(l.lines, line), true
	}
}

func (l *list) removeLines(chosen func(line string) bool) {
	before := len(l.lines)
	l.lines = slices.DeleteFunc(l.lines, chosen)
	l.changed = l.changed || len(l.lines) != before
}

// save writes the changes. The order does not matter: the next ReleaseStale removes a name without
// a directory, and a directory without a name reserves its ID as well.
func (l *lists) save() error { return errors.Join(l.names.save(), l.projects.save()) }

// save replaces the file, with the same mode and owner.
func (l *list) save() error {
	if !l.changed {
		return nil
	}
	if err := l.replace(); err != nil {
		return fmt.Errorf("write list of projects: %w", err)
	}
	l.changed = false
	return nil
}

func (l *list) replace() (err error) {
	was, err := l.file.Stat()
	if err != nil {
		return err
	}
	// The name is fixed, so that crashes leave at most one file; the lock makes it exclusive.
	name := filepath.Join(filepath.Dir(l.file.Name()), "."+filepath.Base(l.file.Name())+".new")
	draft, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(draft.Name())
		}
	}()
	if len(l.lines) > 0 {
		_, err = draft.WriteString(strings.Join(l.lines, "\n") + "\n")
	}
	err = errors.Join(err, draft.Chmod(was.Mode().Perm()))
	if owner, ok := was.Sys().(*syscall.Stat_t); ok {
		err = errors.Join(err, draft.Chown(int(owner.Uid), int(owner.Gid)))
	}
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), l.file.Name())
}

// nothingStale reports, without locking, whether there is nothing to remove.
func nothingStale(dir string, stale func(dir string) bool) (bool, error) {
	l := &lists{&list{}, &list{}}
	for name, into := range map[string]*list{projectsFile: l.projects, namesFile: l.names} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("read list of projects: %w", err)
		}
		into.lines = splitLines(string(text))
	}
	l.removeStale(stale)
	return !l.projects.changed && !l.names.changed, nil
}

// within reports whether path is below dir.
func within(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }
