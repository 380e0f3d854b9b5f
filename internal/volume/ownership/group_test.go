package ownership

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// volume creates a small tree of one user, with a link to a file outside.
func volume(t *testing.T) (dir, outside string) {
	dir, outside = t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(
		os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(dir, "sub/file"), nil, 0o400),
		os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

func expect(t *testing.T, path string, gid, mode uint32) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil || st.Gid != gid || st.Mode&0o7777 != mode {
		t.Errorf("%s: group %d, mode %o (%v); want %d, %o", filepath.Base(path), st.Gid, st.Mode&0o7777, err, gid, mode)
	}
}

func TestApply(t *testing.T) {
	dir, outside := volume(t)
	if err := Apply(dir, Group{ID: 2000}, Progress{}); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, 2000, 0o2775)
	expect(t, filepath.Join(dir, "sub"), 2000, 0o2770)
	expect(t, filepath.Join(dir, "sub/file"), 2000, 0o660)
	expect(t, filepath.Join(dir, "link"), 2000, 0o777)
	expect(t, outside, 0, 0o600)
}

func TestReadOnlyGetsNoWriteBits(t *testing.T) {
	dir, _ := volume(t)
	if err := Apply(dir, Group{ID: 2000, ReadOnly: true}, Progress{}); err != nil {
		t.Fatal(err)
	}
	expect(t, filepath.Join(dir, "sub"), 2000, 0o2750)
	expect(t, filepath.Join(dir, "sub/file"), 2000, 0o440)
}

func TestOnRootMismatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		gid    int
		mode   os.FileMode
		walked bool
	}{
		{"matching root", 2000, 0o775 | os.ModeSetgid, false},
		{"another group", 2001, 0o775 | os.ModeSetgid, true},
		{"no write bit", 2000, 0o755 | os.ModeSetgid, true},
		{"no setgid bit", 2000, 0o775, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, _ := volume(t)
			if err := errors.Join(os.Chown(dir, -1, c.gid), os.Chmod(dir, c.mode)); err != nil {
				t.Fatal(err)
			}
			if err := Apply(dir, Group{ID: 2000, Policy: v1.FSGroupChangeOnRootMismatch}, Progress{}); err != nil {
				t.Fatal(err)
			}
			if c.walked {
				expect(t, filepath.Join(dir, "sub/file"), 2000, 0o660)
			} else {
				expect(t, filepath.Join(dir, "sub/file"), 0, 0o400)
			}
		})
	}
}

// TestApplyFollowsNoSwappedDirectory has another pod that shares the volume swap a directory for a
// link to a directory of the node, as fast as it can, during Apply.
func TestApplyFollowsNoSwappedDirectory(t *testing.T) {
	dir, host := t.TempDir(), t.TempDir()
	folder, link := filepath.Join(dir, "sub"), filepath.Join(dir, "link")
	if err := errors.Join(os.Chmod(host, 0o700), os.WriteFile(filepath.Join(host, "shadow"), nil, 0o600),
		os.Mkdir(folder, 0o755), os.Symlink(host, link)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	for range 2000 {
		if err := Apply(dir, Group{ID: 2000}, Progress{}); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-stopped
	expect(t, host, 0, 0o700)
	expect(t, filepath.Join(host, "shadow"), 0, 0o600)
}
