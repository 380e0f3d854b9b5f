package bed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// maxSites bounds how many beds stand on a machine at a time.
const maxSites = 64

// site is one bed's share of the machine. Every name and address follows from its number,
// so beds do not meet, ports need no searching, and what a killed bed left behind is found
// by the next that takes its number.
type site struct {
	number int
	wire   string // the first three parts of the addresses on the bridge
	dir    string // all files of the bed
	lock   *os.File
}

func newSite(number int) *site {
	return &site{
		number: number,
		wire:   fmt.Sprintf("172.30.%d", number),
		// Not below the directory for temporary files, which may be in memory: nodes should
		// see the file systems that nodes have.
		dir: filepath.Join(cacheDir(), fmt.Sprintf("bed-%d", number)),
	}
}

// claimSite takes the lowest free number. The kernel drops the lock with the process, so
// a number is free again however its holder ended.
func claimSite() (*site, error) {
	for n := range maxSites {
		s := newSite(n)
		lock, err := tryLock(s.lockFile())
		if err != nil {
			return nil, fmt.Errorf("claim bed: %w", err)
		}
		if lock == nil {
			continue
		}
		s.lock = lock
		if err := s.sweep(); err != nil {
			lock.Close()
			return nil, fmt.Errorf("sweep what a former bed left: %w", err)
		}
		if err := os.MkdirAll(s.logDir(), 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("claim bed: %w", err), s.release())
		}
		return s, nil
	}
	return nil, fmt.Errorf("claim bed: all %d are in use", maxSites)
}

// tryLock returns the locked file, or nil when somebody else holds it. Holders delete the
// file when they leave, so a lock counts only while the name still leads to what was locked.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	named, nameErr := os.Stat(path)
	locked, err := file.Stat()
	if err != nil || nameErr != nil || !os.SameFile(named, locked) {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (s *site) bridgeMAC() string {
	return fmt.Sprintf("02:53:77:00:00:%02x", s.number)
}
func (s *site) bridge() string { return fmt.Sprintf("swbed%d", s.number) }

// lockFile is the same for everybody on the machine, whatever their directories are: so are
// the bridge and the addresses.
func (s *site) lockFile() string { return fmt.Sprintf("/run/swiftlet-bed-%d.lock", s.number) }

func (s *site) logDir() string   { return filepath.Join(s.dir, "logs") }
func (s *site) gateway() string  { return s.nodeAddress(1) }
func (s *site) loopback() string { return fmt.Sprintf("127.30.%d.1", s.number) }

func (s *site) nodeAddress(host int) string { return fmt.Sprintf("%s.%d", s.wire, host) }
func (s *site) podCIDR(host int) string     { return fmt.Sprintf("10.%d.%d.0/24", 128+s.number, host) }
func (s *site) cgroupName(node string) string {
	return s.bridge() + "-" + node
}

// sweep removes what a bed of this number left when it was killed. Its processes are gone
// by then: they die with the process that started them.
func (s *site) sweep() error {
	if err := removeLink(s.bridge()); err != nil {
		return err
	}
	hierarchies, err := readHierarchies()
	if err != nil {
		return err
	}
	for _, h := range hierarchies {
		stale, err := filepath.Glob(filepath.Join(h.dir, s.cgroupName("*")))
		if err != nil {
			return err
		}
		for _, dir := range stale {
			if err := removeCgroups(dir); err != nil {
				return err
			}
		}
	}
	return s.removeFiles()
}

// removeFiles deletes the bed's directory, unless something is still mounted in it: a
// delete must never go through a mount.
func (s *site) removeFiles() error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.dir))
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	for _, m := range mounts {
		if m.Mountpoint != s.dir {
			return fmt.Errorf("remove %s: %s is still mounted", s.dir, m.Mountpoint)
		}
	}
	return removeAllSoon(s.dir)
}

// release gives the number back.
func (s *site) release() error {
	err := s.removeFiles()
	os.Remove(s.lockFile())
	return errors.Join(err, s.lock.Close())
}
