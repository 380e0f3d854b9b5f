package blockdev

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// stuck is a kernel that neither mounts nor unmounts.
type stuck struct{ err error }

func (s stuck) Bind(int, string) error       { return s.err }
func (s stuck) Unmount(string) error         { return s.err }
func (s stuck) Mounted(string) (bool, error) { return false, nil }

// Whoever finds a pod's folder after a crash learns by the link alone that a device may be
// held for it: it is there before anything is done, and until all is undone.
func TestLinkIsThereWhileAnythingIs(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "device")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := Map{Link: filepath.Join(dir, "pod/volumeDevices/kind/pv"), Held: filepath.Join(dir, "plugins/kind/pv/uid")}
	leadsTo := func(want string) {
		t.Helper()
		if to, err := os.Readlink(m.Link); err != nil || to != want {
			t.Errorf("the link leads to %q (%v), want %q", to, err, want)
		}
		if all, err := os.ReadDir(filepath.Dir(m.Link)); err != nil || len(all) != 1 {
			t.Errorf("the folder of links holds %v (%v)", all, err)
		}
	}
	for range 2 {
		if err := m.Announce(); err != nil {
			t.Fatal(err)
		}
		leadsTo(m.Held)
	}
	broken := stuck{errors.New("killed")}
	if err := m.Make(broken, device); !errors.Is(err, broken.err) {
		t.Errorf("made with %v", err)
	}
	leadsTo(device)
	if err := m.Announce(); err != nil {
		t.Fatal(err)
	}
	leadsTo(device)
	if err := m.Release(broken); !errors.Is(err, broken.err) {
		t.Errorf("released with %v", err)
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
