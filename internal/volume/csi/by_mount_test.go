package csi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// staged creates a staged volume and returns its device ID and path. Without a handle its volume data
// is unreadable.
func (f *fixture) staged(t *testing.T, handle string, withNote bool) (id, path string) {
	t.Helper()
	id = mountedID(driverName, handle)
	path, _, err := f.stagingPath(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		t.Fatal(err)
	}
	if withNote {
		err = volumeData{Driver: driverName, Handle: handle}.write(filepath.Dir(path))
	} else {
		err = os.WriteFile(filepath.Join(filepath.Dir(path), volumeDataFile), []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id, path
}

// unreadableVolume creates the pod's volume with unreadable volume data and returns its mount point.
func (f *fixture) unreadableVolume(t *testing.T) string {
	t.Helper()
	dir := f.published(false).Dir(Name)
	target := filepath.Join(dir, mountDir)
	if err := os.MkdirAll(target, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, volumeDataFile), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	f.mounted[target] = true
	return target
}

func TestDeviceByMount(t *testing.T) {
	for name, c := range map[string]struct {
		mounted, twins []string // by handle: staged volumes that are mounts, and of the pod's file system
		want           string   // of the one that the pod has, "" if it is not known
		may            []string
	}{
		"own file system":               {mounted: []string{"a", "b"}, twins: []string{"a"}, want: "a", may: []string{"a"}},
		"two mounts at the same path":   {mounted: []string{"a", "b"}, twins: []string{"a", "a"}, want: "a", may: []string{"a"}},
		"shared file system":            {mounted: []string{"a", "b"}, twins: []string{"a", "b"}, may: []string{"a", "b"}},
		"no staged volume matches":      {mounted: []string{"a", "b"}},
		"driver without staging mounts": {may: []string{"a", "b"}},
		"other volume not mounted":      {mounted: []string{"a"}, may: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			target := f.unreadableVolume(t)
			ids, paths := map[string]string{}, map[string]string{}
			for _, handle := range []string{"a", "b"} {
				ids[handle], paths[handle] = f.staged(t, handle, true)
				f.mounted[paths[handle]] = slices.Contains(c.mounted, handle)
			}
			for _, handle := range c.twins {
				f.twins[target] = append(f.twins[target], paths[handle])
			}
			got, err := f.DeviceOf(f.published(false))
			if got != ids[c.want] || (err == nil) != (c.want != "") {
				t.Errorf("device is %q (%v), want that of %q", got, err, c.want)
			}
			for handle, id := range ids {
				if may, err := f.MayUse(f.published(false), id); err != nil || may != slices.Contains(c.may, handle) {
					t.Errorf("may use %s: %v %v", handle, may, err)
				}
			}
			f.mounted[target] = false
			if got, err := f.DeviceOf(f.published(false)); got != "" || err != nil {
				t.Errorf("unmounted, the device is %q %v", got, err)
			}
			if may, err := f.MayUse(f.published(false), ids["a"]); may || err != nil {
				t.Errorf("unmounted, it may use a: %v %v", may, err)
			}
		})
	}
}

// The driver is called if the staged volume is known; otherwise the volume is unmounted without it.
func TestTearDownWithUnreadableVolumeData(t *testing.T) {
	for name, c := range map[string]struct {
		stagedNote bool
		requests   int
	}{
		"staged volume known":   {true, 1},
		"staged volume unknown": {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := newFixture(t), newDriver(t)
			f.register(t, d)
			target := f.unreadableVolume(t)
			_, path := f.staged(t, "handle", c.stagedNote)
			f.mounted[path], f.twins[target] = true, []string{path}
			d.unpublished = func(path string) { f.mounted[path] = false }
			if err := f.TearDown(t.Context(), f.published(false)); err != nil {
				t.Fatal(err)
			}
			requests := d.take()
			if len(requests) != c.requests || c.requests > 0 && requests[0].(*csi.NodeUnpublishVolumeRequest).VolumeId != "handle" {
				t.Errorf("calls of the driver: %v", requests)
			}
			if _, err := os.Lstat(filepath.Dir(target)); !os.IsNotExist(err) {
				t.Errorf("left: %v", f.tree(t))
			}
		})
	}
}

func TestRawVolumeWithUnreadableVolumeData(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	r := f.request(asBlock)
	if err := f.Stage(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got, err := f.MapDevice(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	d.take()
	if err := os.WriteFile(filepath.Join(f.rawDir("pv"), "data", volumeDataFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.TearDown(t.Context(), f.published(true)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(got.HostPath); !os.IsNotExist(err) {
		t.Errorf("the device is still there: %v", err)
	}
	if err := f.Unstage(t.Context(), rawID("pv")); err != nil {
		t.Fatal(err)
	}
	if staged, err := f.Staged(); err != nil || len(staged) > 0 {
		t.Errorf("left: %v %v", f.tree(t), err)
	}
	if requests := d.take(); len(requests) > 0 {
		t.Errorf("calls of the driver without a handle: %v", requests)
	}
}

// A crash between write and rename leaves a temporary file next to the volume data.
func TestTearDownRemovesTemporaryFiles(t *testing.T) {
	f, d := newFixture(t), newDriver(t)
	f.register(t, d)
	if _, err := f.SetUp(t.Context(), f.request()); err != nil {
		t.Fatal(err)
	}
	dir := f.published(false).Dir(Name)
	for _, name := range []string{".vol_data.json.new", ".vol_data.json.4711"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.TearDown(t.Context(), f.published(false)); err != nil {
		t.Fatal(err)
	}
	for _, left := range f.tree(t) {
		if strings.Contains(left, volumeDataFile) {
			t.Errorf("left behind: %s", left)
		}
	}
}
