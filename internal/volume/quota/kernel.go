package quota

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Constants of linux/quota.h, linux/dqblk_xfs.h and linux/fs.h that golang.org/x/sys does not have.
// The ioctl numbers are those of amd64, arm64, riscv64 and s390x.
const (
	cmdGetQuota  = 0x800007
	cmdSetQuota  = 0x800008
	cmdGetState  = 'X'<<8 + 8 // Q_XGETQSTATV, which is not specific to XFS
	prjQuota     = 2
	prjCounted   = 1 << 4 // FS_QUOTA_PDQ_ACCT
	limitsValid  = 1 | 1<<2
	getAttribute = 0x801c581f // FS_IOC_FSGETXATTR
	setAttribute = 0x401c5820 // FS_IOC_FSSETXATTR
	inherited    = 0x200      // FS_XFLAG_PROJINHERIT
)

// quotaState is struct fs_quota_statv; only its first fields are used.
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

// fileSystem is a file system with project quotas.
type fileSystem struct {
	// device is its block device, for kernels before 5.14; "" if quotactl_fd is available.
	device string
}

// unsupportedError means that a file system has no project quotas.
type unsupportedError struct {
	device uint64
	why    error
}

func (e *unsupportedError) Error() string { return e.why.Error() }

// accounting returns the file system of an open file, or an *unsupportedError if it does not
// account projects.
func accounting(f *os.File) (fileSystem, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileSystem{}, fmt.Errorf("stat %s: %w", f.Name(), err)
	}
	var on fileSystem
	state := quotaState{version: 1}
	err := on.quotactl(f, cmdGetState, 0, unsafe.Pointer(&state))
	if errors.Is(err, unix.ENOSYS) { // from the file system, or because the kernel lacks the call
		if on.device = deviceOf(st.Dev); on.device != "" {
			state = quotaState{version: 1}
			err = on.quotactl(f, cmdGetState, 0, unsafe.Pointer(&state))
		}
	}
	if err == nil && state.flags&prjCounted == 0 {
		err = errors.New("project quotas are off")
	}
	if err != nil {
		return fileSystem{}, &unsupportedError{st.Dev, err}
	}
	return on, nil
}

// deviceOf is the mounted device with the number, "" if unknown.
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

// quotactl calls quotactl(2) for projects.
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
		return quotaBlock{}, nil // not known to XFS
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

// clearLimits removes the limits of a project, if it has any.
func (s fileSystem) clearLimits(f *os.File, id uint32) error {
	block, err := s.block(f, id)
	if err != nil || block.bytesHard|block.bytesSoft|block.inodesHard|block.inodesSoft == 0 {
		return err
	}
	if err := s.quotactl(f, cmdSetQuota, id, unsafe.Pointer(&quotaBlock{valid: limitsValid})); err != nil {
		return fmt.Errorf("remove the limit of project %d: %w", id, err)
	}
	return nil
}

// idOf is the project of an open file, 0 for none.
func idOf(f *os.File) (uint32, error) {
	var a attributes
	if err := attribute(int(f.Fd()), getAttribute, &a); err != nil {
		return 0, fmt.Errorf("read the project of %s: %w", f.Name(), err)
	}
	return a.project, nil
}

// setFileProject moves an open file to the project; files created in a directory inherit it.
func setFileProject(f *os.File, id uint32, inherit bool) error {
	if err := setProject(int(f.Fd()), id, inherit); err != nil {
		return fmt.Errorf("set project of %s to %d: %w", f.Name(), id, err)
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
