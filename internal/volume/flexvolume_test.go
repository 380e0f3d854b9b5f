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

// directoryDriver is a FlexVolume driver that supports mount and unmount only.
const directoryDriver = `#!/bin/sh
case $1 in
init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
mount) mount --bind "$(echo "$3" | sed 's/.*"from":"\([^"]*\)".*/\1/')" "$2" && echo '{"status": "Success"}' ;;
unmount) if mountpoint -q "$2"; then umount "$2"; fi && echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
`

// diskDriver supports attach and detach only.
const diskDriver = `#!/bin/sh
case $1 in
init) echo '{"status": "Success"}' ;;
attach) echo "{\"status\": \"Success\", \"device\": \"$(echo "$2" | sed 's/.*"from":"\([^"]*\)".*/\1/')\"}" ;;
detach) echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}'; exit 1 ;;
esac
`

// install installs a FlexVolume driver.
func (n *node) install(name, script string) {
	n.t.Helper()
	dir := filepath.Join(n.root, "drivers", strings.ReplaceAll(name, "/", "~"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(script), 0o755); err != nil {
		n.t.Fatal(err)
	}
}

func flexPV(driver, from string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: driver, Options: map[string]string{"from": from}}}
}

// flexKinds are entries of the contract suite.
var flexKinds = []kind{
	{name: "FlexVolume mounted by driver", directory: "volumes/test~folder/pv", inMemory: true, persistent: true,
		install: func(n *node) { n.install("test/folder", directoryDriver) },
		pv:      func(t *testing.T) v1.PersistentVolumeSource { return flexPV("test/folder", t.TempDir()) }},
	{name: "FlexVolume on a disk", directory: "volumes/test~disk/pv", inMemory: true, persistent: true,
		install: func(n *node) { n.install("test/disk", diskDriver) },
		pv:      func(t *testing.T) v1.PersistentVolumeSource { return flexPV("test/disk", disk(t)) }},
}

// TestFlexDriverInstalledLate: an event reports the missing driver, and the mount succeeds once it is
// installed.
func TestFlexDriverInstalledLate(t *testing.T) {
	n := newNode(t)
	from := t.TempDir()
	p := n.pod(v1.VolumeSource{FlexVolume: &v1.FlexVolumeSource{Driver: "test/folder", Options: map[string]string{"from": from}}})
	done := make(chan error, 1)
	go func() { _, err := n.Mount(t.Context(), p); done <- err }()
	want := `MountVolume.SetUp failed for volume "vol" : no volume plugin matched: the node has no FlexVolume driver "test/folder": there is no program ` +
		filepath.Join(n.root, "drivers/test~folder/folder")
	poll.Until(t, "an event", func() bool { return n.events.has(want) })
	n.install("test/folder", directoryDriver)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("not mounted after the driver was installed")
	}
}

// TestUnmountWithRemovedFlexDriver: the pod is unmounted without its driver.
func TestUnmountWithRemovedFlexDriver(t *testing.T) {
	n := newNode(t)
	n.install("test/folder", directoryDriver)
	from := t.TempDir()
	canary := filepath.Join(from, "canary")
	if err := os.WriteFile(canary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.mount(n.pod(n.claimed(flexPV("test/folder", from))))
	if err := os.RemoveAll(filepath.Join(n.root, "drivers", "test~folder")); err != nil {
		t.Fatal(err)
	}
	n.unmount("uid-1")
	if entries, err := os.ReadDir(filepath.Join(n.root, "pods", "uid-1")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("content of the volume: %v", err)
	}
}
