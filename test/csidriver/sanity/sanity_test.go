// Package sanity holds the test driver to what the CSI specification asks of every driver.
// It is a module of its own, so that what the suite needs stays out of the agent's.
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
		t.Fatal("the driver mounts: run as root")
	}
	// Short, because a socket's name must be.
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
		t.Error("something is still mounted in", dir)
	}
}

// start builds and runs the driver, as a process of its own.
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
			t.Error("the driver ended:", err)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		if time.Now().After(end) {
			t.Fatal("the driver does not listen")
		}
	}
}
