package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// disk creates an empty block device.
func disk(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 16<<20); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("create loop device: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("detach loop device: %v: %s", err, out)
		}
	})
	return device
}

func raw(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
	mode := v1.PersistentVolumeBlock
	pv.Spec.VolumeMode = &mode
}

func TestRawVolume(t *testing.T) {
	device := disk(t)
	n := newNode(t)
	source := n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: device}}, raw, onNode("here"))
	podWith := func(uid string) *v1.Pod {
		p := n.podNamed(uid, source)
		c := &p.Spec.Containers[0]
		c.VolumeMounts, c.VolumeDevices = nil, []v1.VolumeDevice{{Name: "vol", DevicePath: "/dev/xvda"}}
		return p
	}
	p := podWith("a")
	for range 2 { // unchanged by a new agent
		mounted, err := n.Mount(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		devices, err := n.ContainerDevices(&p.Spec.Containers[0], mounted)
		want := Device{HostPath: filepath.Join(n.root, "pods/a/volumeDevices/kubernetes.io~local-volume/pv"), ContainerPath: "/dev/xvda", Permissions: "mrw"}
		if err != nil || len(devices) != 1 || devices[0] != want {
			t.Fatalf("devices %+v, %v; want %+v", devices, err, want)
		}
		if to, err := os.Readlink(want.HostPath); err != nil || to != device {
			t.Errorf("the link points to %s (%v), want %s", to, err, device)
		}
		bindMount := filepath.Join(n.root, "plugins/kubernetes.io/local-volume/volumeDevices/pv/a")
		if info, err := os.Stat(bindMount); err != nil || info.Mode()&os.ModeDevice == 0 {
			t.Errorf("bind mount: %v, %v", info, err)
		}
		if got := loopsOn(t, bindMount); len(got) != 1 {
			t.Errorf("kept open by %v, want one loop device", got)
		}
		n.restart()
	}
	if _, err := n.Mount(t.Context(), podWith("b")); err != nil {
		t.Fatal(err)
	}
	n.unmount("a")
	n.unmount("b")
	left := tree(t, filepath.Join(n.root, "plugins"))
	if strings.Contains(left, "/pv") || len(loopsOn(t, n.root)) != 0 {
		t.Errorf("left: %s, %v", left, loopsOn(t, n.root))
	}
	for _, uid := range []string{"a", "b"} {
		if entries, err := os.ReadDir(filepath.Join(n.root, "pods", uid)); err != nil || len(entries) != 0 {
			t.Errorf("left of pod %s: %v, %v", uid, entries, err)
		}
	}
}

// loopsOn lists the loop devices with a backing file at or below path.
func loopsOn(t *testing.T, path string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(data), path) {
			found = append(found, file)
		}
	}
	return found
}

func TestInvalidLocalVolumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nowhere": `MountVolume.NewMounter initialization failed for volume "pv" : path "/nowhere" does not exist`,
		file:       `MountVolume.NewMounter initialization failed for volume "pv" : only directory and block device are supported`,
	} {
		n := newNode(t)
		n.cfg.MountTimeout = 100 * time.Millisecond
		_, err := n.Mount(t.Context(), n.pod(n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: path}})))
		if err == nil || !n.events.has(want) {
			t.Errorf("%s: %v; events %q, want %s", path, err, n.events.recorded, want)
		}
	}
}

func TestSharedLocalVolumeKeepsItsGroup(t *testing.T) {
	n := newNode(t)
	source := n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: t.TempDir()}})
	grouped := func(uid string, group int64) *v1.Pod {
		p := n.podNamed(uid, source)
		p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
		return p
	}
	n.mount(grouped("a", 2000))
	n.mount(grouped("b", 3000))
	if want := "AlreadyMountedVolume: The requested fsGroup is 3000, but the volume pv has GID 2000. The volume may not be shareable."; !n.events.has(want) {
		t.Errorf("events %q, want %s", n.events.recorded, want)
	}
}
