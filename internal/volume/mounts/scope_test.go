package mounts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMountCommands replaces the node's programs by recorders: mount(8) runs in a systemd scope if
// systemd-run works, which is tried once.
func TestMountCommands(t *testing.T) {
	const (
		probe = "systemd-run --description=Kubernetes systemd probe --scope true"
		scope = "systemd-run --description=Kubernetes transient mount for /target --scope -- mount"
		nfs   = " -t nfs -o ro,vers=4 server:/dir /target"
		disk  = " -t ext4 -o defaults /dev/disk /target"
	)
	for name, c := range map[string]struct {
		systemd string // script of systemd-run
		want    []string
	}{
		"systemd runs":              {`while [ "$1" != -- ] && [ "$1" != true ]; do shift; done; [ "$1" = true ] || { shift; exec "$@"; }`, []string{probe, scope + nfs, "mount" + nfs, scope + disk, "mount" + disk}},
		"systemd is only installed": {"exit 1", []string{probe, "mount" + nfs, "mount" + disk}},
		"no systemd":                {"", []string{"mount" + nfs, "mount" + disk}},
	} {
		t.Run(name, func(t *testing.T) {
			log := standIns(t, map[string]string{"systemd-run": c.systemd, "mount": "exit 0", "umount": "exit 1",
				"blkid": "echo TYPE=ext4", "fsck": "exit 0", "mkfs.ext4": "exit 0"})
			tools := NewTools()
			if err := tools.Mount("server:/dir", "/target", "nfs", []string{"ro", "vers=4"}); err != nil {
				t.Error(err)
			}
			if err := tools.FormatAndMount("/dev/disk", "/target", "ext4", nil); err != nil {
				t.Error(err)
			}
			var got []string
			for line := range strings.Lines(readText(t, log)) {
				if strings.HasPrefix(line, "systemd-run") || strings.HasPrefix(line, "mount") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("commands:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestFailedMountInScope(t *testing.T) {
	standIns(t, map[string]string{"systemd-run": `[ "$3" = true ] || { echo access denied; exit 32; }`, "mount": "exit 0", "umount": "exit 1"})
	err := NewTools().Mount("server:/dir", "/target", "nfs", nil)
	want := "mount failed: exit status 32\nMounting command: systemd-run\nMounting arguments: " +
		"--description=Kubernetes transient mount for /target --scope -- mount  -t nfs server:/dir /target\nOutput: access denied\n"
	if err == nil || err.Error() != want {
		t.Errorf("got error %q, want %q", err, want)
	}
}

// The author of a pod chooses the server of an NFS volume. As an option, such as -T, the file of file systems to
// mount, it would mount any directory of the node.
func TestMountSourceIsNoOption(t *testing.T) {
	log := standIns(t, map[string]string{"mount": "exit 0"})
	target := t.TempDir()
	for source, target := range map[string]string{"-T/volume:/fstab": target, "server:/export": "-B"} {
		if err := (Tools{}).Mount(source, target, "nfs", nil); err == nil {
			t.Errorf("mount %s %s succeeded", source, target)
		}
	}
	if text, err := os.ReadFile(log); err == nil {
		t.Errorf("mount(8) was run: %s", text)
	}
}

// standIns makes these scripts the only programs in PATH, besides sh. Each first adds its command line to
// the returned file. An empty script is a program that is not installed.
func standIns(t *testing.T, scripts map[string]string) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	for name, script := range scripts {
		if script == "" {
			continue
		}
		text := "#!/bin/sh\necho " + name + ` "$@" >> ` + log + "\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return log
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
