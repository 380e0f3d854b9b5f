package stats

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelDeviceIO: the kernel counts what a process reads and writes on a loop device. It needs cgroup
// v2 with the io controller.
func TestKernelDeviceIO(t *testing.T) {
	const root = "/sys/fs/cgroup"
	if controllers, err := os.ReadFile(root + "/cgroup.controllers"); err != nil || !strings.Contains(string(controllers), "io") {
		t.Skip("cgroup v2 with the io controller is not mounted")
	}
	if err := os.WriteFile(root+"/cgroup.subtree_control", []byte("+io"), 0); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "device-io")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	image := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(image, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := func(command string) string {
		out, err := exec.CommandContext(t.Context(), "sh", "-ec", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	shell("test -e /dev/loop-control || modprobe loop")
	device := shell("losetup -f --show " + image)
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", device).Run() })
	shell("echo $$ > " + dir + "/cgroup.procs; dd if=/dev/zero of=" + device + " bs=64k count=16 oflag=direct; dd if=" + device + " of=/dev/null bs=64k count=8 iflag=direct")

	var st unix.Stat_t
	if err := unix.Stat(device, &st); err != nil {
		t.Fatal(err)
	}
	number := deviceNumber{uint64(unix.Major(st.Rdev)), uint64(unix.Minor(st.Rdev))}
	for _, d := range readDeviceIOv2(newFileReader(), dir) {
		if d.number != number {
			continue
		}
		got := [4]uint64{countOf(d.bytes, "Write"), countOf(d.requests, "Write"), countOf(d.bytes, "Read"), countOf(d.requests, "Read")}
		if want := [4]uint64{16 * 64 << 10, 16, 8 * 64 << 10, 8}; got != want {
			t.Errorf("bytes and requests written, then read: %v, want %v", got, want)
		}
		return
	}
	text, _ := os.ReadFile(dir + "/io.stat")
	t.Errorf("%s (%v) has no counts: %q", device, number, text)
}
