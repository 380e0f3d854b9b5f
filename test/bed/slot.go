package bed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// maxSlots is how many beds can exist on a host at a time.
const maxSlots = 64

// slot is one bed's share of the host. All its names and addresses are derived from its number, so
// that beds do not collide, and the next bed of that number finds the leftovers of a killed one.
type slot struct {
	number int
	subnet string // the first three bytes of the addresses on the bridge
	dir    string // all files of the bed
	lock   *os.File
}

func newSlot(number int) *slot {
	return &slot{
		number: number,
		subnet: fmt.Sprintf("172.30.%d", number),
		// Not below /tmp, which may be a tmpfs: nodes should have files on a disk.
		dir: filepath.Join(cacheDir(), fmt.Sprintf("bed-%d", number)),
	}
}

// claimSlot locks the lowest free number. The kernel releases the lock when the process exits for
// any reason.
func claimSlot() (*slot, error) {
	for n := range maxSlots {
		s := newSlot(n)
		lock, err := tryLock(s.lockFile())
		if err != nil {
			return nil, fmt.Errorf("claim bed: %w", err)
		}
		if lock == nil {
			continue
		}
		s.lock = lock
		if err := s.removeLeftovers(); err != nil {
			lock.Close()
			return nil, fmt.Errorf("remove leftovers of an earlier bed: %w", err)
		}
		if err := os.MkdirAll(s.logDir(), 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("claim bed: %w", err), s.release())
		}
		return s, nil
	}
	return nil, fmt.Errorf("claim bed: all %d are in use", maxSlots)
}

// tryLock returns the locked file, or nil if another process holds it. Holders delete the file on
// release, so the lock is valid only if the path still refers to the locked file.
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

func (s *slot) bridgeMAC() string {
	return fmt.Sprintf("02:53:77:00:00:%02x", s.number)
}
func (s *slot) bridge() string { return fmt.Sprintf("swbed%d", s.number) }

// lockFile is host-wide, independent of the cache directory: bridge and addresses are host-wide.
func (s *slot) lockFile() string { return fmt.Sprintf("/run/swiftlet-bed-%d.lock", s.number) }

func (s *slot) logDir() string   { return filepath.Join(s.dir, "logs") }
func (s *slot) gateway() string  { return s.nodeAddress(1) }
func (s *slot) loopback() string { return fmt.Sprintf("127.30.%d.1", s.number) }

func (s *slot) nodeAddress(host int) string { return fmt.Sprintf("%s.%d", s.subnet, host) }
func (s *slot) podCIDR(host int) string     { return fmt.Sprintf("10.%d.%d.0/24", 128+s.number, host) }
func (s *slot) cgroupName(node string) string {
	return s.bridge() + "-" + node
}

// removeLeftovers removes what a killed bed of this number left behind. It had no processes left:
// they die with the process that started them.
func (s *slot) removeLeftovers() error {
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

// removeFiles deletes the bed's directory unless something is mounted below it: files behind a
// mount must not be deleted.
func (s *slot) removeFiles() error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(s.dir))
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	for _, m := range mounts {
		if m.Mountpoint != s.dir {
			return fmt.Errorf("remove %s: %s is still mounted", s.dir, m.Mountpoint)
		}
	}
	return removeAllRetry(s.dir)
}

// release removes the files and releases the lock.
func (s *slot) release() error {
	err := s.removeFiles()
	os.Remove(s.lockFile())
	return errors.Join(err, s.lock.Close())
}
