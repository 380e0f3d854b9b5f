package iptables

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// testTimeout allows for a loaded machine.
const testTimeout = 30 * time.Second

// inOwnNetworkNamespace reports whether this process has a network namespace of its own. If not,
// it runs the test in a process that has.
func inOwnNetworkNamespace(t *testing.T) bool {
	t.Helper()
	const mark = "SWIFTLET_TEST_OWN_NETWORK"
	if os.Getenv(mark) != "" {
		return true
	}
	for _, program := range []string{"iptables-nft", "iptables-legacy", "nft"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			t.Skipf("needs root and %s", program)
		}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// selectIptables puts one variant of iptables first in PATH.
func selectIptables(t *testing.T, kind string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, what := range []string{"", "-save"} {
			program, err := exec.LookPath(name + "-" + kind + what)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(program, filepath.Join(dir, name+what)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// reconcile runs a Reconciler until the test ends.
func reconcile(t *testing.T, c clock.Clock) {
	t.Helper()
	k, err := New(Deps{Clock: c, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// sh runs a shell command.
func sh(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// tables lists the existing chains and rules, without counters.
func tables(t *testing.T, program string) string {
	t.Helper()
	var running []string
	for line := range strings.Lines(sh(t, program+"-save")) {
		if line[0] == '*' || line[0] == ':' || line[0] == '-' {
			line, _, _ = strings.Cut(line, " [")
			running = append(running, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(running, "\n") + "\n"
}

// awaitTables waits until the tables of both families are as the reference kubelet creates them.
func awaitTables(t *testing.T, again func()) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); ; again() {
		var differ string
		for _, program := range []string{"iptables", "ip6tables"} {
			want, err := os.ReadFile(filepath.Join("testdata", program+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			differ += cmp.Diff(sections(string(want)), sections(tables(t, program)))
		}
		if differ == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(differ)
		}
	}
}

// sections are the tables that contain KUBE- chains, sorted: the order depends on the variant.
func sections(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, "*") {
		if strings.Contains(part, "KUBE-") {
			list = append(list, part)
		}
	}
	slices.Sort(list)
	return list
}

func pause() { time.Sleep(50 * time.Millisecond) }

// The kernel notifies of every change of nftables.
func TestFlushOfNftablesIsDetected(t *testing.T) {
	if !inOwnNetworkNamespace(t) {
		return
	}
	selectIptables(t, "nft")
	reconcile(t, clock.RealClock{})
	awaitTables(t, pause)
	for _, flush := range []string{
		"nft flush ruleset",
		"for i in iptables ip6tables; do for t in filter nat mangle; do $i -t $t -F; $i -t $t -X; done; done",
		"iptables -t mangle -F; iptables -t mangle -X; ip6tables -t nat -X KUBE-KUBELET-CANARY",
	} {
		sh(t, flush)
		awaitTables(t, pause)
	}
}

// The kernel does not notify of changes of the legacy tables: they are polled.
func TestFlushOfLegacyTablesIsDetected(t *testing.T) {
	if !inOwnNetworkNamespace(t) {
		return
	}
	selectIptables(t, "legacy")
	c := clocktesting.NewFakeClock(time.Now())
	reconcile(t, c)
	awaitTables(t, pause)
	sh(t, "for i in iptables ip6tables; do for t in filter nat mangle; do $i -t $t -F; $i -t $t -X; done; done")
	pause()
	if strings.Contains(tables(t, "iptables"), hintChain) {
		t.Error("the chain was created again before the poll")
	}
	awaitTables(t, func() { pause(); c.Step(pollInterval) })
}

// Existing chains and rules are not created twice.
func TestEnsureIsIdempotent(t *testing.T) {
	if !inOwnNetworkNamespace(t) {
		return
	}
	selectIptables(t, "nft")
	for range 2 {
		for _, f := range []family{{program: "iptables", loopback: true}, {program: "ip6tables"}} {
			if err := f.ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		awaitTables(t, pause)
	}
}

func TestWithoutIptables(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var output strings.Builder
	k, err := New(Deps{Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(&output, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(t.Context()); err != nil || !strings.Contains(output.String(), "iptables: not available on this node") {
		t.Errorf("error %v, log %q", err, output.String())
	}
}
