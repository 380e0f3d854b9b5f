package blockdev

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// stuck is a Mounter whose calls fail.
type stuck struct{ err error }

func (s stuck) Bind(int, string) error       { return s.err }
func (s stuck) Unmount(string) error         { return s.err }
func (s stuck) Mounted(string) (bool, error) { return false, nil }

// After a crash the link alone shows that a pod may have a device: it exists before anything else is
// done and until everything else is undone.
func TestLinkIsCreatedFirstAndRemovedLast(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "device")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := Map{Link: filepath.Join(dir, "pod/volumeDevices/kind/pv"), BindMount: filepath.Join(dir, "plugins/kind/pv/uid")}
	leadsTo := func(want string) {
		t.Helper()
		if to, err := os.Readlink(m.Link); err != nil || to != want {
			t.Errorf("the link points to %q (%v), want %q", to, err, want)
		}
		if all, err := os.ReadDir(filepath.Dir(m.Link)); err != nil || len(all) != 1 {
			t.Errorf("the directory of links holds %v (%v)", all, err)
		}
	}
	for range 2 {
		if err := m.CreateLink(); err != nil {
			t.Fatal(err)
		}
		leadsTo(m.BindMount)
	}
	broken := stuck{errors.New("killed")}
	if err := m.Create(broken, device); !errors.Is(err, broken.err) {
		t.Errorf("create: %v", err)
	}
	leadsTo(device)
	if err := m.CreateLink(); err != nil {
		t.Fatal(err)
	}
	leadsTo(device)
	if err := m.Release(broken); !errors.Is(err, broken.err) {
		t.Errorf("release: %v", err)
	}
	leadsTo(device)
	if err := m.Release(stuck{}); err != nil {
		t.Fatal(err)
	}
	leadsTo(device)
	for range 2 {
		if err := m.Unlink(); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := os.ReadDir(filepath.Dir(m.Link)); err != nil || len(all) != 0 {
		t.Errorf("left: %v (%v)", all, err)
	}
}
