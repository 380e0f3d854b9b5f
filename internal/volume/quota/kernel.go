package quota

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// What golang.org/x/sys lacks of linux/quota.h, linux/dqblk_xfs.h and linux/fs.h. The numbers
// of the ioctls are those of amd64, arm64, riscv64 and s390x.
const (
	cmdGetQuota  = 0x800007
	cmdSetQuota  = 0x800008
	cmdGetState  = 'X'<<8 + 8 // Q_XGETQSTATV, which file systems other than XFS answer, too
	prjQuota     = 2
	prjCounted   = 1 << 4 // FS_QUOTA_PDQ_ACCT
	limitsValid  = 1 | 1<<2
	getAttribute = 0x801c581f // FS_IOC_FSGETXATTR
	setAttribute = 0x401c5820 // FS_IOC_FSSETXATTR
	inherited    = 0x200      // FS_XFLAG_PROJINHERIT
)

// quotaState begins as struct fs_quota_statv; the rest of it says nothing to us.
type quotaState struct {
	version int8
	_       uint8
	flags   uint16
	_       [256]byte
}

// quotaBlock is struct if_dqblk.
type quotaBlock struct {
	bytesHard, bytesSoft, bytes    uint64
	inodesHard, inodesSoft, inodes uint64
	bytesGrace, inodesGrace        uint64
	valid                          uint32
	_                              uint32
}

// attributes is struct fsxattr.
type attributes struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

// fileSystem is one that counts.
type fileSystem struct {
	// device is its own, for kernels before 5.14; "" where any of its files names it.
	device string
}

// cannotCount says that a file system does not count.
type cannotCount struct {
	device uint64
	why    error
}

func (e *cannotCount) Error() string { return e.why.Error() }

// accounting finds out how the file system of an open file is asked, a *cannotCount where it
// keeps no count of projects.
func accounting(f *os.File) (fileSystem, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileSystem{}, fmt.Errorf("look at %s: %w", f.Name(), err)
	}
	var on fileSystem
	state := quotaState{version: 1}
	err := on.quotactl(f, cmdGetState, 0, unsafe.Pointer(&state))
	if errors.Is(err, unix.ENOSYS) { // by the file system, or because the call is too new
		if on.device = deviceOf(st.Dev); on.device != "" {
			state = quotaState{version: 1}
			err = on.quotactl(f, cmdGetState, 0, unsafe.Pointer(&state))
		}
	}
	if err == nil && state.flags&prjCounted == 0 {
		err = errors.New("project quotas are off")
	}
	if err != nil {
		return fileSystem{}, &cannotCount{st.Dev, err}
	}
	return on, nil
}

// deviceOf is the device that is mounted with the number, "" where that is not known.
func deviceOf(number uint64) string {
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		same := unix.Mkdev(uint32(m.Major), uint32(m.Minor)) == number
		return !same, same
	})
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0].Source
}

// quotactl calls quotactl(2) about projects.
func (s fileSystem) quotactl(f *os.File, command uint32, id uint32, with unsafe.Pointer) error {
	word := uintptr(command<<8 | prjQuota)
	var failed unix.Errno
	if s.device == "" {
		_, _, failed = unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), word, uintptr(id), uintptr(with), 0, 0)
	} else {
		device, err := unix.BytePtrFromString(s.device)
		if err != nil {
			return err
		}
		_, _, failed = unix.Syscall6(unix.SYS_QUOTACTL, word, uintptr(unsafe.Pointer(device)), uintptr(id), uintptr(with), 0, 0)
	}
	if failed != 0 {
		return failed
	}
	return nil
}

func (s fileSystem) block(f *os.File, id uint32) (quotaBlock, error) {
	var block quotaBlock
	err := s.quotactl(f, cmdGetQuota, id, unsafe.Pointer(&block))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return quotaBlock{}, nil // XFS has never heard of it
	}
	if err != nil {
		return quotaBlock{}, fmt.Errorf("read the quota of project %d: %w", id, err)
	}
	return block, nil
}

func (s fileSystem) usage(f *os.File, id uint32) (Usage, error) {
	block, err := s.block(f, id)
	return Usage{Bytes: block.bytes, Inodes: block.inodes}, err
}

// unlimit takes away the limits of a project, if it has any.
func (s fileSystem) unlimit(f *os.File, id uint32) error {
	block, err := s.block(f, id)
	if err != nil || block.bytesHard|block.bytesSoft|block.inodesHard|block.inodesSoft == 0 {
		return err
	}
	if err := s.quotactl(f, cmdSetQuota, id, unsafe.Pointer(&quotaBlock{valid: limitsValid})); err != nil {
		return fmt.Errorf("take away the limit of project %d: %w", id, err)
	}
	return nil
}

// idOf is the project of an open file, 0 where it is in none.
func idOf(f *os.File) (uint32, error) {
	var a attributes
	if err := attribute(int(f.Fd()), getAttribute, &a); err != nil {
		return 0, fmt.Errorf("read the project of %s: %w", f.Name(), err)
	}
	return a.project, nil
}

// include puts an open file into the project; what is made in a folder inherits it.
func include(f *os.File, id uint32, folder bool) error {
	if err := setProject(int(f.Fd()), id, folder); err != nil {
		return fmt.Errorf("put %s into project %d: %w", f.Name(), id, err)
	}
	return nil
}

func setProject(fd int, id uint32, inherit bool) error {
	var a attributes
	if err := attribute(fd, getAttribute, &a); err != nil {
		return fmt.Errorf("read attributes: %w", err)
	}
	want := a
	want.project = id
	if inherit {
		want.flags |= inherited
	}
	if want == a {
		return nil
	}
	return attribute(fd, setAttribute, &want)
}

func attribute(fd int, request uintptr, a *attributes) error {
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(a))); failed != 0 {
		return failed
	}
	return nil
}
