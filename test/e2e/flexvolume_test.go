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

// attaching has the kubelet attach volumes, as no controller here has drivers of its own.
const attaching = "enableControllerAttachDetach: false"

// flexDisk is a FlexVolume driver in the form that most are: a script. Its volumes are files
// that it attaches as loop devices; formatting and mounting it leaves to the kubelet.
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

// flexFolder mounts for itself and attaches nothing.
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

// TestFlexVolume has volumes of two drivers brought up, handed to the other kubelet under
// their running pods, and taken away by that one, both ways.
func TestFlexVolume(t *testing.T) {
	t.Parallel()
	node := attachingNode(t, "flex")
	if _, err := node.Exec(t.Context(), "sh", "-c", "mkdir -p /var/lib/flex && truncate -s 16M /var/lib/flex/disk"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // loop devices outlive their node
		if _, err := node.Exec(context.Background(), "sh", "-c", "losetup -n -O NAME -j /var/lib/flex/disk | xargs -r losetup -d"); err != nil {
			t.Error(err)
		}
	})
	install(t, node, "test/disk", flexDisk)
	install(t, node, "test/folder", flexFolder)
	space := namespace(t)
	claimed(t, space, "disk", corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "test/disk", Options: map[string]string{"file": "/var/lib/flex/disk"}},
	}})
	for _, to := range handsTo() {
		disk := startPod(t, space, user("disk", node.Name(), fromClaim("disk")))
		folder := startPod(t, space, user("folder", node.Name(), corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "test/folder"}}))
		inPod(t, node, space, "disk", `grep -q " /data ext4 " /proc/mounts && echo kept >> /data/file`)
		inPod(t, node, space, "folder", `grep -q '"kubernetes.io/pod.name":"folder"' /data/options`)
		handOver(t, node, to)
		same(t, disk, awaitPod(t, space, "disk", usual, ready))
		same(t, folder, awaitPod(t, space, "folder", usual, ready))
		inPod(t, node, space, "disk", `grep -q kept /data/file`)
		remove(t, space, "disk")
		remove(t, space, "folder")
		eventually(t, 2*usual, func() string { return flexTraces(t, node) })
		testFlexCalls(t, node, space, to)
	}
	data, err := node.Exec(t.Context(), "sh", "-c", "mkdir /var/lib/flex/look && mount -o loop /var/lib/flex/disk /var/lib/flex/look && cat /var/lib/flex/look/file; umount /var/lib/flex/look")
	if want := strings.Repeat("kept\n", len(handsTo())); err != nil || data != want {
		t.Errorf("the disk holds %q (%v), want %q", data, err, want)
	}
}

// handsTo are the kubelets that a node is handed to, one after the other.
func handsTo() []bed.KubeletKind {
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

// handOver has another kubelet take the node over.
func handOver(t *testing.T, node *bed.Box, to bed.KubeletKind) {
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

// install puts a FlexVolume driver on the node.
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

// flexTraces is what is left of FlexVolumes on the node.
func flexTraces(t *testing.T, node *bed.Box) string {
	t.Helper()
	out, err := node.Exec(t.Context(), "sh", "-c",
		`grep -E "kubernetes.io/flexvolume|test~" /proc/self/mounts; ls -d /var/lib/kubelet/plugins/kubernetes.io/flexvolume/test/disk/mounts/* /var/lib/kubelet/pods/*/volumes/test~* 2>/dev/null; true`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testFlexCalls wants the driver to have been called as the reference kubelet calls it. That
// one does not detach what it found attached when it started, so its disk stays attached.
func testFlexCalls(t *testing.T, node *bed.Box, volume string, by bed.KubeletKind) {
	t.Helper()
	detach := "detach " + volume + " " + node.Name()
	eventually(t, usual, func() string {
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
		// The reference asks for a name and does not use it; both ask a driver again after
		// a restart what it can do and whether its volume is there.
		if !strings.HasPrefix(line, "getvolumename ") && !slices.Contains(calls, line) {
			calls = append(calls, line)
		}
	}
	told := `{"file":"/var/lib/flex/disk","kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"` + volume + `","kubernetes.io/readwrite":"rw"}`
	for _, line := range []string{"init", "attach " + told + " " + node.Name()} {
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
