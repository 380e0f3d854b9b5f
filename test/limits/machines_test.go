package limits

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/cgroup"
	"swiftlet/test/bed"
	"swiftlet/test/images"
	"swiftlet/test/uml"
)

var (
	record   = flag.Bool("record", false, "write the tables to testdata instead of comparing")
	innerRun = flag.String("inside", "", "pattern of the tests to run on the machines; default: all")
)

// Environment variables for tests on the machines. Without envMachine a test runs on the host.
const (
	envMachine = "SWIFTLET_LIMITS_MACHINE"
	envBundle  = "SWIFTLET_LIMITS_BUNDLE"
	envKubelet = "SWIFTLET_LIMITS_KUBELET"
	envNode    = "SWIFTLET_LIMITS_NODE"  // kubeconfig of the node, if there is an API server
	envAdmin   = "SWIFTLET_LIMITS_ADMIN" // kubeconfig of an administrator
)

// deadline bounds a run on a machine that hangs. A run takes a fraction of it.
const deadline = 8 * time.Minute

func TestCgroup1(t *testing.T) {
	command, env := testCommand(t)
	name := fmt.Sprintf("swiftlet-limits-%d", os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../internal/standalone/testdata/box.sh", append([]string{name}, command...)...)
	cmd.Env = append(env, envMachine+"=box")
	defer func() {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
		if err := cgroup.RemoveAll(context.Background(), clock.RealClock{}, groups); err != nil {
			t.Error(err)
		}
	}()
	out, err := cmd.CombinedOutput()
	reportOutput(t, out, err)
}

func TestCgroup2(t *testing.T) {
	command, env := testCommand(t)
	runUML(t, uml.Machine{Command: command, Env: env})
}

// TestCgroup2Cluster runs the tests that need an API server, which runs on the host.
func TestCgroup2Cluster(t *testing.T) {
	command, env := testCommand(t)
	b, err := bed.Start(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	node, err := b.AddExternalNode(t.Context(), nodeName)
	if err != nil {
		t.Fatal(err)
	}
	runUML(t, uml.Machine{
		Command: command,
		Env:     append(env, envNode+"="+node.Kubeconfig, envAdmin+"="+b.ControlPlane.Kubeconfig),
		Network: node.Network,
	})
}

// runUML runs a command on a machine with cgroup v2.
func runUML(t *testing.T, m uml.Machine) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var out bytes.Buffer
	m.Dir, m.Env, m.MemoryMiB, m.SwapMiB, m.Out = dir, append(m.Env, envMachine+"=uml"), 1024, 512, &out
	if *record {
		m.Shared = filepath.Join(dir, "testdata")
	}
	code, err := uml.Run(ctx, m)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	reportOutput(t, out.Bytes(), err)
}

// testCommand returns a command that runs this test program on a machine. It builds what the
// command needs.
func testCommand(t *testing.T) (command, env []string) {
	t.Helper()
	switch {
	case os.Getenv(envMachine) != "":
		t.Skip("already on a machine")
	case testing.Short() || os.Geteuid() != 0:
		t.Skip("needs root: runs a node")
	}
	find := bed.FindBundle
	if isReference() {
		find = bed.FindBinaries
	}
	bin, err := find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Build(t.Context(), bin.Cache); err != nil {
		t.Fatal(err)
	}
	kubelet := filepath.Join(bin.Reference, "kubelet")
	if !isReference() {
		kubelet = filepath.Join(t.TempDir(), "kubelet") // under this name Swiftlet is a kubelet
		if err := bin.BuildSwiftlet(t.Context(), os.Stderr, kubelet); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = []string{self, "-test.v", "-test.timeout=" + deadline.String(), "-test.run=" + *innerRun, fmt.Sprintf("-record=%v", *record)}
	return command, append(os.Environ(), envBundle+"="+bin.Bundle, envKubelet+"="+kubelet, "SWIFTLET_CACHE="+bin.Cache)
}

func reportOutput(t *testing.T, out []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("no test ran:\n%s", out)
	}
	t.Logf("on the machine:\n%s", out)
}

func isReference() bool { return os.Getenv("SWIFTLET_BED_KUBELET") == string(bed.Reference) }

// skipUnlessOnMachine skips a test that is not for this machine, which may or may not have an API
// server.
func skipUnlessOnMachine(t *testing.T, cluster bool) {
	t.Helper()
	if os.Getenv(envMachine) == "" || cluster != (os.Getenv(envNode) != "") {
		t.Skip("run by TestCgroup1, TestCgroup2 or TestCgroup2Cluster on a machine")
	}
}
