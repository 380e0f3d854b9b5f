package fc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/scsi"
)

// fabric is a fake of the kernel, udev and multipath, in directories.
type fabric struct {
	*Plugin
	t     *testing.T
	root  string
	calls []string
}

func newFabric(t *testing.T) *fabric {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{t: t, root: root}
	f.Plugin = New(Deps{RootDir: root, Mounter: f, Host: scsi.Host{Sys: filepath.Join(root, "sys"), Dev: filepath.Join(root, "dev"), Runner: f}})
	return f
}

func (f *fabric) Bind(int, string) error                             { return errors.New("not here") }
func (f *fabric) Mounted(string) (bool, error)                       { return false, nil }
func (f *fabric) Unmount(string) error                               { return nil }
func (f *fabric) SameFilesystemMount(string, string) (string, error) { return "", nil }
func (f *fabric) Run(_ context.Context, program string, args ...string) (string, error) {
	f.calls = append(f.calls, strings.Join(append([]string{program}, args...), " "))
	return "", nil
}

func (f *fabric) file(path string) {
	f.t.Helper()
	path = filepath.Join(f.root, path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
		f.t.Fatal(err)
	}
}

// disk adds a disk with a link.
func (f *fabric) disk(name, link string) {
	f.t.Helper()
	f.file("dev/" + name)
	f.file("sys/block/" + name + "/device/delete")
	link = filepath.Join(f.root, "dev/disk", link)
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("../../"+name, link)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fabric) read(path string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.root, path))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func request(in v1.FCVolumeSource) plugin.Request {
	return plugin.Request{Spec: plugin.Spec{Volume: &v1.Volume{}, PV: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{FC: &in}}}}}
}

func TestDisksByName(t *testing.T) {
	byPort := v1.FCVolumeSource{TargetWWNs: []string{"50060e801049cfd1", "50060e801049cfd2"}, Lun: ptr.To[int32](1)}
	byID := v1.FCVolumeSource{WWIDs: []string{"VENDOR 3600508b4"}}
	for _, c := range []struct {
		name             string
		in               v1.FCVolumeSource
		link             string
		want, id, attach string
	}{
		{"by a port", byPort, "by-path/fc-0x50060e801049cfd2-lun-1", "sda", "50060e801049cfd1-50060e801049cfd2-lun-1",
			"kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:1"},
		{"by a port, on a bus", byPort, "by-path/pci-0000:41:00.0-fc-0x50060e801049cfd1-lun-1", "sda", "50060e801049cfd1-50060e801049cfd2-lun-1",
			"kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:1"},
		{"another disk there", byPort, "by-path/fc-0x50060e801049cfd1-lun-10", "", "50060e801049cfd1-50060e801049cfd2-lun-1",
			"kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:1"},
		{"by its own name", byID, "by-id/scsi-VENDOR_3600508b4", "sda", "VENDOR_3600508b4", "kubernetes.io/fc/[VENDOR 3600508b4]"},
		{"a part of it", byID, "by-id/scsi-VENDOR_3600508b4-part1", "", "VENDOR_3600508b4", "kubernetes.io/fc/[VENDOR 3600508b4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFabric(t)
			f.disk("sda", c.link)
			f.file("sys/class/scsi_host/host0/scan")
			r := request(c.in)
			got, err := f.Connect(t.Context(), r)
			if c.want == "" {
				if err == nil || err.Error() != "no fc disk found" {
					t.Errorf("found %s, %v", got, err)
				}
			} else if err != nil || got != filepath.Join(f.root, "dev", c.want) {
				t.Errorf("found %s, %v", got, err)
			}
			if scan := f.read("sys/class/scsi_host/host0/scan"); scan != "- - -" {
				t.Errorf("the host got %q", scan)
			}
			if id, err := f.DeviceID(t.Context(), r.Spec); id != c.id || err != nil {
				t.Errorf("device ID %s, %v; want %s", id, err, c.id)
			}
			if name, err := f.AttachName(t.Context(), r.Spec); string(name) != c.attach || err != nil {
				t.Errorf("attached as %s, %v; want %s", name, err, c.attach)
			}
		})
	}
}

// TestMultipath: the multipath device is used, and removed with all its paths.
func TestMultipath(t *testing.T) {
	f := newFabric(t)
	f.disk("sda", "by-path/fc-0x50060e801049cfd1-lun-1")
	f.disk("sdb", "by-path/fc-0x50060e801049cfd2-lun-1")
	f.disk("sdc", "by-path/fc-0x50060e801049cfd1-lun-2")
	f.file("dev/dm-4")
	f.file("sys/block/dm-4/slaves/sda")
	f.file("sys/block/dm-4/slaves/sdb")
	r := request(v1.FCVolumeSource{TargetWWNs: []string{"50060e801049cfd1", "50060e801049cfd2"}, Lun: ptr.To[int32](1)})
	joined := filepath.Join(f.root, "dev/dm-4")
	if got, err := f.Connect(t.Context(), r); err != nil || got != joined {
		t.Fatalf("found %s, %v", got, err)
	}
	id, err := f.DeviceID(t.Context(), r.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(f.path(id), 0o750); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Unstage(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"multipath -f " + joined}; !slices.Equal(f.calls, want) {
		t.Errorf("called %q, want %q", f.calls, want)
	}
	for disk, want := range map[string]string{"sda": "1", "sdb": "1", "sdc": ""} {
		if got := f.read("sys/block/" + disk + "/device/delete"); got != want {
			t.Errorf("delete of %s holds %q, want %q", disk, got, want)
		}
	}
}

func TestInvalidNames(t *testing.T) {
	for _, in := range []v1.FCVolumeSource{{}, {TargetWWNs: []string{"1"}}, {WWIDs: []string{"../../x"}}, {WWIDs: []string{".."}}, {WWIDs: []string{"volumeDevices"}}} {
		if id, err := newFabric(t).DeviceID(t.Context(), request(in).Spec); err == nil {
			t.Errorf("%+v has device ID %q", in, id)
		}
	}
}
