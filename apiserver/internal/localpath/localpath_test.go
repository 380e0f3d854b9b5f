package localpath

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	volumes "k8s.io/kubernetes/pkg/volume"
	"k8s.io/mount-utils"

	"swiftlet/internal/volume/safepath"
)

// newPlugin returns a plugin for a directory that does not exist yet, with nothing mounted.
func newPlugin(t *testing.T) *Plugin {
	t.Helper()
	p := New(filepath.Join(t.TempDir(), "volumes"))
	p.Mounts = func() ([]mount.MountPoint, error) { return nil, nil }
	return p
}

func provision(t *testing.T, p *Plugin, name string) (*corev1.PersistentVolume, error) {
	t.Helper()
	provisioner, err := p.NewProvisioner(klog.Background(), volumes.VolumeOptions{PVName: name, PVC: &corev1.PersistentVolumeClaim{}})
	if err != nil {
		t.Fatal(err)
	}
	return provisioner.Provision(nil, nil)
}

func remove(p *Plugin, pv *corev1.PersistentVolume) error {
	deleter, err := p.NewDeleter(klog.Background(), &volumes.Spec{PersistentVolume: pv})
	if err != nil {
		return err
	}
	return deleter.Delete()
}

func TestDirectoryComesAndGoes(t *testing.T) {
	p := newPlugin(t)
	pv, err := provision(t, p, "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	dir := pv.Spec.Local.Path
	for path, mode := range map[string]os.FileMode{p.Dir: parentMode, dir: volumeMode} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", path, info, err, mode)
		}
	}
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := provision(t, p, "pvc-1"); err != nil {
		t.Errorf("provision again: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Errorf("provision again has lost data: %v", err)
	}
	for range 2 { // it may be retried
		if err := remove(p, pv); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("deleted through a symbolic link: %v", err)
	}
}

func TestOnlyOwnDirectoriesAreDeleted(t *testing.T) {
	p := newPlugin(t)
	pv, err := provision(t, p, "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, path string }{
		{"pvc-1", "/etc"},
		{"pvc-2", pv.Spec.Local.Path},
		{"..", filepath.Dir(p.Dir)},
		{".", p.Dir},
		{"", p.Dir},
		{"x/../pvc-1", pv.Spec.Local.Path},
	} {
		hostile := pv.DeepCopy()
		hostile.Name, hostile.Spec.Local.Path = row.name, row.path
		if err := remove(p, hostile); err == nil {
			t.Errorf("%s at %s was deleted", row.name, row.path)
		}
	}
	p.Mounts = func() ([]mount.MountPoint, error) {
		return []mount.MountPoint{{Path: "/"}, {Path: pv.Spec.Local.Path + "/disk"}}, nil
	}
	if err := remove(p, pv); err == nil || !strings.Contains(err.Error(), "/disk is mounted") {
		t.Errorf("with a mount in it: %v", err)
	}
	if _, err := os.Stat(pv.Spec.Local.Path); err != nil {
		t.Error(err)
	}
}

// TestDeepTreeIsDeleted: a pod may nest more directories than the process has descriptors.
func TestDeepTreeIsDeleted(t *testing.T) {
	const depth, descriptors = 3000, 200
	p := newPlugin(t)
	pv, err := provision(t, p, "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	dig(t, pv.Spec.Local.Path, depth)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: descriptors, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err = remove(p, pv)
	if limitErr := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); limitErr != nil {
		t.Fatal(limitErr)
	}
	if err != nil {
		t.Errorf("delete: %.200v", err)
	}
	if _, err := os.Lstat(pv.Spec.Local.Path); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
		if err := safepath.RemoveAll(pv.Spec.Local.Path); err != nil { // t.TempDir could not
			t.Error(err)
		}
	}
}

// dig creates directories in each other.
func dig(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		err := unix.Mkdirat(fd, "d", 0o755)
		next, openErr := unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err := errors.Join(err, openErr, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	unix.Close(fd)
}

// TestLateMountIsNotEntered: a pod may mount something after the check.
func TestLateMountIsNotEntered(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	p := newPlugin(t)
	pv, err := provision(t, p, "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	outside, mounted := t.TempDir(), filepath.Join(pv.Spec.Local.Path, "mounted")
	kept := filepath.Join(outside, "kept")
	if err := errors.Join(os.Mkdir(mounted, 0o700), os.WriteFile(kept, nil, 0o600), unix.Mount(outside, mounted, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(mounted, unix.MNT_DETACH)
	if err := remove(p, pv); err == nil || !strings.Contains(err.Error(), mounted+": something is mounted there") {
		t.Errorf("delete: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("deleted through a mount: %v", err)
	}
}

func TestHostileNamesStayInside(t *testing.T) {
	p := newPlugin(t)
	for _, name := range []string{"..", "../x", "/tmp/x"} {
		if _, err := provision(t, p, name); err == nil {
			t.Errorf("%q was created", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, options := range map[string]volumes.VolumeOptions{
		"parameters":  {Parameters: map[string]string{"a": "b"}, PVC: &corev1.PersistentVolumeClaim{}},
		"block":       {PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: &block}}},
		"data_source": {PVC: &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{}}}},
	} {
		if _, err := newPlugin(t).NewProvisioner(klog.Background(), options); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
