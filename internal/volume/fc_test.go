package volume

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/poll"
)

const wwn = "50060e801049cfd1"

// fcDisk is the source of a volume on an attached disk.
func (n *node) fcDisk(t *testing.T) v1.PersistentVolumeSource {
	device := disk(t)
	links := filepath.Join(n.root, "dev/disk/by-path")
	kernel := filepath.Join(n.root, "sys/block", filepath.Base(device), "device")
	for _, dir := range []string{links, kernel} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(device, filepath.Join(links, "pci-0000:41:00.0-fc-0x"+wwn+"-lun-3")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kernel, "delete"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return v1.PersistentVolumeSource{FC: &v1.FCVolumeSource{TargetWWNs: []string{wwn}, Lun: ptr.To[int32](3)}}
}

var fcKinds = []kind{{name: "Fibre Channel disk", directory: "volumes/kubernetes.io~fc/pv", inMemory: true, persistent: true,
	pvOn: func(t *testing.T, n *node) v1.PersistentVolumeSource { return n.fcDisk(t) }}}

// deletedDisk is what was written to the delete file of the disk.
func (n *node) deletedDisk() string {
	files, err := filepath.Glob(filepath.Join(n.root, "sys/block/*/device/delete"))
	if err != nil || len(files) != 1 {
		n.t.Fatal(files, err)
	}
	return readFile(n.t, files[0])
}

// TestFCDiskIsDeletedWithLastPod, by another agent.
func TestFCDiskIsDeletedWithLastPod(t *testing.T) {
	n := newNode(t)
	source := n.claimed(n.fcDisk(t))
	n.mount(n.podNamed("a", source))
	n.mount(n.podNamed("b", source))
	staged := filepath.Join(n.root, "plugins/kubernetes.io/fc", wwn+"-lun-3")
	if mounted, err := n.deps.Mounter.Mounted(staged); err != nil || !mounted {
		t.Errorf("mounted at %s: %v, %v", staged, mounted, err)
	}
	n.restart()
	n.unmount("a")
	n.unmount("b")
	poll.Until(t, "the disk to be deleted", func() bool { return n.deletedDisk() == "1" })
	poll.Until(t, "nothing to be left", func() bool { _, err := os.Stat(staged); return os.IsNotExist(err) })
}

// TestRawFCDisk: another agent unmaps it.
func TestRawFCDisk(t *testing.T) {
	n := newNode(t)
	source := n.claimed(n.fcDisk(t), raw)
	for _, uid := range []string{"a", "b"} {
		p := n.podNamed(uid, source)
		c := &p.Spec.Containers[0]
		c.VolumeMounts, c.VolumeDevices = nil, []v1.VolumeDevice{{Name: "vol", DevicePath: "/dev/xvda"}}
		if _, err := n.Mount(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		bindMount := filepath.Join(n.root, "plugins/kubernetes.io/fc/volumeDevices", wwn+"-lun-3", uid)
		if got := loopsOn(t, bindMount); len(got) != 1 {
			t.Errorf("kept open by %v, want one loop device", got)
		}
	}
	n.restart()
	n.unmount("a")
	if n.deletedDisk() != "" {
		t.Error("the disk was deleted while a pod uses it")
	}
	n.unmount("b")
	poll.Until(t, "the disk to be deleted", func() bool { return n.deletedDisk() == "1" })
	if got := loopsOn(t, n.root); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if entries, err := os.ReadDir(filepath.Join(n.root, "plugins/kubernetes.io/fc/volumeDevices")); len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
