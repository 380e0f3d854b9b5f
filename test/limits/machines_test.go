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

	"swiftlet/internal/cgroup"
	"swiftlet/test/bed"
	"swiftlet/test/images"
	"swiftlet/test/uml"
)

var (
	record = flag.Bool("record", false, "write what is seen to testdata, instead of comparing")
	inside = flag.String("inside", "", "pattern of the tests to run on the machines, all by default")
)

// What the machines are told. A test that finds no name of one is not on any.
const (
	envMachine = "SWIFTLET_LIMITS_MACHINE"
	envBundle  = "SWIFTLET_LIMITS_BUNDLE"
	envKubelet = "SWIFTLET_LIMITS_KUBELET"
	envNode    = "SWIFTLET_LIMITS_NODE"  // kubeconfig of the node, where there is an API server
	envAdmin   = "SWIFTLET_LIMITS_ADMIN" // kubeconfig of an administrator
)

// deadline is for a machine that hangs; a test run takes a fraction of it.
const deadline = 8 * time.Minute

func TestCgroup1(t *testing.T) {
	command, env := job(t)
	name := fmt.Sprintf("swiftlet-limits-%d", os.Getpid())
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../internal/standalone/testdata/box.sh", append([]string{name}, command...)...)
	cmd.Env = append(env, envMachine+"=box")
	defer func() {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
		if err := cgroup.RemoveAll(context.Background(), groups); err != nil {
			t.Error(err)
		}
	}()
	out, err := cmd.CombinedOutput()
	show(t, out, err)
}

func TestCgroup2(t *testing.T) {
	command, env := job(t)
	runUML(t, uml.Machine{Command: command, Env: env})
}

// TestCgroup2Cluster runs the tests that need an API server. It stays on this machine.
func TestCgroup2Cluster(t *testing.T) {
	command, env := job(t)
	b, err := bed.Start(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	seat, err := b.AddSeat(t.Context(), nodeName)
	if err != nil {
		t.Fatal(err)
	}
	runUML(t, uml.Machine{
		Command: command,
		Env:     append(env, envNode+"="+seat.Kubeconfig, envAdmin+"="+b.ControlPlane.Kubeconfig),
		Network: &uml.Network{Interface: seat.Interface, Address: seat.Address, Gateway: seat.Gateway},
	})
}

// runUML runs a job on a machine with cgroup v2.
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
	show(t, out.Bytes(), err)
}

// job is this program again, with what it needs on another machine made ready.
func job(t *testing.T) (command, env []string) {
	t.Helper()
	switch {
	case os.Getenv(envMachine) != "":
		t.Skip("on the machine already")
	case testing.Short() || os.Geteuid() != 0:
		t.Skip("runs a node, which needs root")
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
		kubelet = filepath.Join(t.TempDir(), "kubelet") // by this name our program is one
		if err := bin.BuildSwiftlet(t.Context(), os.Stderr, kubelet); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = []string{self, "-test.v", "-test.timeout=" + deadline.String(), "-test.run=" + *inside, fmt.Sprintf("-record=%v", *record)}
	return command, append(os.Environ(), envBundle+"="+bin.Bundle, envKubelet+"="+kubelet, "SWIFTLET_CACHE="+bin.Cache)
}

func show(t *testing.T, out []byte, err error) {
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

// onMachine skips the tests that are not for this one, which has an API server or not.
func onMachine(t *testing.T, cluster bool) {
	t.Helper()
	if os.Getenv(envMachine) == "" || cluster != (os.Getenv(envNode) != "") {
		t.Skip("runs on a machine of its own, by TestCgroup1, TestCgroup2 and TestCgroup2Cluster")
	}
}
