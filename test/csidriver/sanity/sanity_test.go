// Package sanity runs the csi-sanity suite of kubernetes-csi on the test driver. It is its own
// module, so that the suite's dependencies stay out of the agent's.
package sanity

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

func TestDriver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root: the driver mounts")
	}
	// Not t.TempDir: the path of a socket is limited to 107 characters.
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := start(t, dir)

	config := sanity.NewTestConfig()
	config.Address = "unix://" + socket
	config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 16<<20, 32<<20
	config.TestNodeVolumeAttachLimit = true
	sanity.Test(t, config)

	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		t.Error("mounts left in", dir)
	}
}

// start builds and starts the driver.
func start(t *testing.T, dir string) (socket string) {
	t.Helper()
	program := filepath.Join(dir, "csidriver")
	build := exec.Command("go", "build", "-o", program, "./test/csidriver")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	socket = filepath.Join(dir, "csi.sock")
	driver := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		"-endpoint", socket, "-state", filepath.Join(dir, "state"), "-topology", "swiftlet.dev/rack=one", "-max-volumes", "7")
	driver.Stderr = os.Stderr
	driver.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = driver.Process.Signal(syscall.SIGTERM)
		if err := driver.Wait(); err != nil {
			t.Error("driver exited:", err)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		if time.Now().After(end) {
			t.Fatal("driver does not listen")
		}
	}
}
