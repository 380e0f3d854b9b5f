package iscsi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swiftlet/internal/volume/plugin"
)

// raw creates a mapped raw disk with its own device number. It returns its device ID and the pod's
// volume.
func (s *san) raw(name, lun string, number int) (string, plugin.Published) {
	s.t.Helper()
	id := filepath.Join(plugin.DevicesDir, "iface-default", "10.0.0.1:3260-"+target+"-lun-"+lun)
	v := plugin.Published{PodUID: "uid", PodDir: filepath.Join(s.root, "pods/uid"), Name: name, Block: true}
	link, bindMount := v.Dir(Name), filepath.Join(s.path(id), "uid")
	n := diskInfo{VolName: name, Portals: []string{"10.0.0.1:3260", "10.0.0.2:3260"}, Iqn: target, Lun: lun, Iface: "default", InitIface: "default"}
	if err := s.writeInfo(n, s.path(id)); err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o750); err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{bindMount, link} {
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, uint32(number)))); err != nil {
			s.t.Skip("device nodes cannot be made:", err)
		}
	}
	return id, v
}

// TestUnreadableDiskInfo: the other volume is found by its disk info, this one by the pod's bind
// mount, and the logout uses the directory name.
func TestUnreadableDiskInfo(t *testing.T) {
	s := newSAN(t, nil)
	whole, wholeVolume := s.raw("whole", "7", 3)
	broken, brokenVolume := s.raw("broken", "8", 5)
	path := filepath.Join(s.path(broken), infoFile)
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, v := range map[string]plugin.Published{whole: wholeVolume, broken: brokenVolume} {
		if got, err := s.DeviceOf(v); err != nil || got != want {
			t.Errorf("device of %s is %q (%v), want %s", v.Name, got, err, want)
		}
		if got, err := s.FindMapDir(v); err != nil || got != s.path(want) {
			t.Errorf("map directory of %s is %q (%v), want %s", v.Name, got, err, s.path(want))
		}
	}
	// A directory that is not a disk's does not prevent the logout of others.
	if err := os.MkdirAll(s.path("iface-default/lost+found"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.path(broken), ".iscsi.json.123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{whole, broken} {
		if err := os.Remove(filepath.Join(s.path(id), "uid")); err != nil {
			t.Fatal(err)
		}
		if err := s.Unstage(t.Context(), id); err != nil {
			t.Errorf("unstage %s: %v", id, err)
		}
		if _, err := os.Lstat(s.path(id)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", id, err)
		}
	}
	if !strings.Contains(s.log.String(), "path="+path) {
		t.Errorf("the log does not name the file:\n%s", s.log.String())
	}
}
