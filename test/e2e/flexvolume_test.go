package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// attaching makes the kubelet attach volumes: the controller here has no FlexVolume drivers.
const attaching = "enableControllerAttachDetach: false"

// flexDisk is a FlexVolume driver. Its volumes are files that it attaches as loop devices. The kubelet
// formats and mounts them.
const flexDisk = `#!/bin/sh
echo "$@" >> /var/lib/flex/calls
option() { echo "$2" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
attached() { losetup -n -O NAME -j "$1"; }
case $1 in
init) echo '{"status": "Success"}' ;;
attach)
	file=$(option file "$2")
	[ -n "$(attached "$file")" ] || losetup -f "$file"
	echo "{\"status\": \"Success\", \"device\": \"$(attached "$file")\"}" ;;
waitforattach) echo "{\"status\": \"Success\", \"device\": \"$2\"}" ;;
detach)
	losetup -d "$(attached /var/lib/flex/disk)"
	echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
`

// flexFolder is a driver that mounts volumes itself and attaches nothing.
const flexFolder = `#!/bin/sh
case $1 in
init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
mount)
	mkdir -p /var/lib/flex/folder && mount --bind /var/lib/flex/folder "$2"
	echo "$3" > "$2/options"
	echo '{"status": "Success"}' ;;
unmount) umount "$2"; echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
`

// TestFlexVolume mounts volumes of two drivers with one kubelet, replaces the kubelet while pods run,
// and unmounts them with the other, in both directions.
func TestFlexVolume(t *testing.T) {
	t.Parallel()
	node := attachingNode(t, "flex")
	if _, err := node.Exec(t.Context(), "sh", "-c", "mkdir -p /var/lib/flex && truncate -s 16M /var/lib/flex/disk"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // loop devices are not removed with the node
		if _, err := node.Exec(context.Background(), "sh", "-c", "losetup -n -O NAME -j /var/lib/flex/disk | xargs -r losetup -d"); err != nil {
			t.Error(err)
		}
	})
	install(t, node, "test/disk", flexDisk)
	install(t, node, "test/folder", flexFolder)
	space := namespace(t)
	createVolumeAndClaim(t, space, "disk", corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "test/disk", Options: map[string]string{"file": "/var/lib/flex/disk"}},
	}})
	for _, to := range kubeletSequence() {
		disk := startPod(t, space, podWithVolume("disk", node.Name(), fromClaim("disk")))
		folder := startPod(t, space, podWithVolume("folder", node.Name(), corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "test/folder"}}))
		inPod(t, node, space, "disk", `grep -q " /data ext4 " /proc/mounts && echo kept >> /data/file`)
		inPod(t, node, space, "folder", `grep -q '"kubernetes.io/pod.name":"folder"' /data/options`)
		replaceKubelet(t, node, to)
		checkSameContainers(t, disk, awaitPod(t, space, "disk", timeout, ready))
		checkSameContainers(t, folder, awaitPod(t, space, "folder", timeout, ready))
		inPod(t, node, space, "disk", `grep -q kept /data/file`)
		deletePod(t, space, "disk")
		deletePod(t, space, "folder")
		eventually(t, 2*timeout, func() string { return flexLeftovers(t, node) })
		testFlexCalls(t, node, space, to)
	}
	data, err := node.Exec(t.Context(), "sh", "-c", "mkdir /var/lib/flex/look && mount -o loop /var/lib/flex/disk /var/lib/flex/look && cat /var/lib/flex/look/file; umount /var/lib/flex/look")
	if want := strings.Repeat("kept\n", len(kubeletSequence())); err != nil || data != want {
		t.Errorf("the disk contains %q (%v), want %q", data, err, want)
	}
}

// kubeletSequence are the kubelets that take over the node, one after another.
func kubeletSequence() []bed.KubeletKind {
	if kubelet != bed.Ours {
		return []bed.KubeletKind{kubelet}
	}
	return []bed.KubeletKind{bed.Reference, bed.Ours}
}

// attachingNode is a node whose kubelet attaches volumes.
func attachingNode(t *testing.T, name string) *bed.Box {
	t.Helper()
	node, err := addNode(t.Context(), name, bed.KubeletOptions{Kind: kubelet, Config: attaching})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	cluster.ShowLogs(t)
	return node
}

// replaceKubelet replaces the node's kubelet.
func replaceKubelet(t *testing.T, node *bed.Box, to bed.KubeletKind) {
	t.Helper()
	if err := node.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: to, Config: attaching}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// install installs a FlexVolume driver on the node.
func install(t *testing.T, node *bed.Box, name, script string) {
	t.Helper()
	dir := node.Inside(filepath.Join("/usr/libexec/kubernetes/kubelet-plugins/volume/exec", strings.ReplaceAll(name, "/", "~")))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// flexLeftovers lists the mounts and directories of FlexVolumes on the node.
func flexLeftovers(t *testing.T, node *bed.Box) string {
	t.Helper()
	out, err := node.Exec(t.Context(), "sh", "-c",
		`grep -E "kubernetes.io/flexvolume|test~" /proc/self/mounts; ls -d /var/lib/kubelet/plugins/kubernetes.io/flexvolume/test/disk/mounts/* /var/lib/kubelet/pods/*/volumes/test~* 2>/dev/null; true`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testFlexCalls checks that the driver was called as by the reference kubelet. The reference does not
// detach disks that were attached before it started, so the disk stays attached.
func testFlexCalls(t *testing.T, node *bed.Box, volume string, by bed.KubeletKind) {
	t.Helper()
	detach := "detach " + volume + " " + node.Name()
	eventually(t, timeout, func() string {
		text, err := node.Exec(t.Context(), "sh", "-c", "tail -n 1 /var/lib/flex/calls; losetup -n -O NAME -j /var/lib/flex/disk")
		if by == bed.Ours && (err != nil || text != detach+"\n") {
			return "the disk is not detached: " + text
		}
		return ""
	})
	text, err := node.Exec(t.Context(), "sh", "-c", "cat /var/lib/flex/calls; rm /var/lib/flex/calls")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		// The reference also calls getvolumename and ignores the result. Both repeat some calls
		// after a restart.
		if !strings.HasPrefix(line, "getvolumename ") && !slices.Contains(calls, line) {
			calls = append(calls, line)
		}
	}
	optionsJSON := `{"file":"/var/lib/flex/disk","kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"` + volume + `","kubernetes.io/readwrite":"rw"}`
	for _, line := range []string{"init", "attach " + optionsJSON + " " + node.Name()} {
		if !slices.Contains(calls, line) {
			t.Errorf("no call %q among\n%s", line, strings.Join(calls, "\n"))
		}
	}
	staged := "/var/lib/kubelet/plugins/kubernetes.io/flexvolume/test/disk/mounts/" + volume
	for _, start := range []string{"waitforattach /dev/loop", "mountdevice " + staged + " /dev/loop", "mount /var/lib/kubelet/pods/", "unmount /var/lib/kubelet/pods/", "unmountdevice " + staged} {
		if !slices.ContainsFunc(calls, func(c string) bool { return strings.HasPrefix(c, start) }) {
			t.Errorf("no call %q... among\n%s", start, strings.Join(calls, "\n"))
		}
	}
}
