package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/test/poll"
)

// fakeISCSIAdm is a fake of iscsiadm and of the kernel's iSCSI: a login adds a loop device and a session
// in a directory that stands for /sys.
const fakeISCSIAdm = `#!/bin/sh
echo "$@" >> "$STANDIN/calls"
while [ $# -gt 0 ]; do
	case $1 in
	-m) mode=$2; shift ;;
	-p) portal=$2; shift ;;
	-T) target=$2; shift ;;
	-o) op=$2; shift ;;
	-n | -v | -I | -t) shift ;;
	--login) op=login ;;
	--logout) op=logout ;;
	esac
	shift
done
address=${portal%:*}
number=${address##*.}
session=$STANDIN/sys/class/iscsi_host/host$number/device/session$number
case $mode-$op in
iface-show) echo "iface.transport_name = tcp" ;;
node-login)
	[ -d "$session" ] && exit 15
	connection=$session/connection$number:0/iscsi_connection/connection$number:0
	lun=$session/target$number:0:0/$number:0:0:0
	mkdir -p "$session/iscsi_session/session$number" "$connection" "$lun/block/${STANDIN_DISK##*/}" "$STANDIN/sys/class/scsi_host/host$number"
	echo "$target" > "$session/iscsi_session/session$number/targetname"
	echo "$address" | tee "$connection/address" > "$connection/persistent_address"
	echo "${portal##*:}" | tee "$connection/port" > "$connection/persistent_port"
	: > "$STANDIN/sys/class/scsi_host/host$number/scan"
	mkdir -p "$STANDIN/dev" && ln -sf "$STANDIN_DISK" "$STANDIN/dev/"
	mkdir -p "$STANDIN/sys/block/${STANDIN_DISK##*/}/device" && : > "$STANDIN/sys/block/${STANDIN_DISK##*/}/device/delete" ;;
node-logout)
	[ -d "$session" ] || exit 21
	rm -r "$session" ;;
esac
`

// installISCSI installs the fake iscsiadm.
func (n *node) installISCSI() {
	n.t.Helper()
	bin := filepath.Join(n.root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "iscsiadm"), []byte(fakeISCSIAdm), 0o755); err != nil {
		n.t.Fatal(err)
	}
	n.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	n.t.Setenv("STANDIN", n.root)
}

// iscsiDisk is the source of a volume on a disk of the target.
func iscsiDisk(t *testing.T) v1.PersistentVolumeSource {
	t.Setenv("STANDIN_DISK", disk(t))
	return v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{
		TargetPortal: "10.0.0.1", IQN: "iqn.2026-01.test:disk", ISCSIInterface: "default",
	}}
}

var iscsiKinds = []kind{{name: "iSCSI disk", directory: "volumes/kubernetes.io~iscsi/pv", inMemory: true, persistent: true,
	install: func(n *node) { n.installISCSI() }, pv: iscsiDisk}}

func loggedIn(root string) bool {
	_, err := os.Stat(filepath.Join(root, "sys/class/iscsi_host/host1/device/session1"))
	return err == nil
}

// TestISCSILogoutWithLastPod: another agent logs out and deletes the disk.
func TestISCSILogoutWithLastPod(t *testing.T) {
	n := newNode(t)
	n.installISCSI()
	source := n.claimed(iscsiDisk(t))
	n.mount(n.podNamed("a", source))
	n.mount(n.podNamed("b", source))
	staged := filepath.Join(n.root, "plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-iqn.2026-01.test:disk-lun-0")
	if mounted, err := n.deps.Mounter.Mounted(staged); err != nil || !mounted {
		t.Errorf("mounted at %s: %v, %v", staged, mounted, err)
	}
	n.restart()
	if err := n.UnstageOrphans(); err != nil {
		t.Fatal(err)
	}
	n.unmount("a")
	if !loggedIn(n.root) {
		t.Error("logged out while a pod uses the disk")
	}
	n.unmount("b")
	poll.Until(t, "the logout", func() bool { return !loggedIn(n.root) })
	poll.Until(t, "nothing to be left", func() bool { _, err := os.Stat(filepath.Dir(staged)); return os.IsNotExist(err) })
	deleted := filepath.Join(n.root, "sys/block", filepath.Base(os.Getenv("STANDIN_DISK")), "device/delete")
	if got := readFile(t, deleted); got != "1" {
		t.Errorf("the delete file has %q, want 1", got)
	}
}

// TestRawISCSIDisk: another agent unmaps it.
func TestRawISCSIDisk(t *testing.T) {
	n := newNode(t)
	n.installISCSI()
	source := n.claimed(iscsiDisk(t), raw)
	p := n.podNamed("a", source)
	c := &p.Spec.Containers[0]
	c.VolumeMounts, c.VolumeDevices = nil, []v1.VolumeDevice{{Name: "vol", DevicePath: "/dev/xvda"}}
	if _, err := n.Mount(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(n.root, "pods/a/volumeDevices/kubernetes.io~iscsi/pv")
	if to, err := os.Readlink(link); err != nil || to != os.Getenv("STANDIN_DISK") {
		t.Errorf("the link points to %s, %v", to, err)
	}
	mapDir := filepath.Join(n.root, "plugins/kubernetes.io/iscsi/volumeDevices/iface-default/10.0.0.1:3260-iqn.2026-01.test:disk-lun-0")
	if got := loopsOn(t, filepath.Join(mapDir, "a")); len(got) != 1 {
		t.Errorf("kept open by %v, want one loop device", got)
	}
	want := `{"VolName":"pv","Portals":["10.0.0.1:3260"],"Iqn":"iqn.2026-01.test:disk","Lun":"0","InitIface":"default","Iface":"default","InitiatorName":""}` + "\n"
	if got := readFile(t, mapDir, "iscsi.json"); got != want {
		t.Errorf("the disk info is %s, want %s", got, want)
	}
	n.restart()
	n.unmount("a")
	poll.Until(t, "the logout", func() bool { return !loggedIn(n.root) })
	poll.Until(t, "nothing to be left", func() bool {
		_, err := os.Stat(mapDir)
		return os.IsNotExist(err) && len(loopsOn(t, n.root)) == 0
	})
}

// TestISCSIWithoutIscsiadm: the error has the missing program.
func TestISCSIWithoutIscsiadm(t *testing.T) {
	n := newNode(t)
	n.t.Setenv("PATH", t.TempDir())
	n.cfg.MountTimeout = 100 * time.Millisecond
	p := n.pod(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2026-01.test:disk", ISCSIInterface: "default"}})
	_, err := n.Mount(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), `the node has no program "iscsiadm", which this volume needs`) {
		t.Error(err)
	}
	n.unmount("uid-1")
	if left, err := os.ReadDir(filepath.Join(n.root, "plugins")); len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
