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

// patienceOfTests is for a loaded machine.
const patienceOfTests = 30 * time.Second

// inOwnNetwork reports whether this process has a network namespace of its own. Where not, the
// test has been run in another that has.
func inOwnNetwork(t *testing.T) bool {
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

// use has iptables be that of one kind.
func use(t *testing.T, kind string) {
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

// keep runs a keeper until the test ends.
func keep(t *testing.T, c clock.Clock) {
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

// sh runs a command of a shell.
func sh(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

// tables are the chains and rules that there are, without counters.
func tables(t *testing.T, program string) string {
	t.Helper()
	var kept []string
	for line := range strings.Lines(sh(t, program+"-save")) {
		if line[0] == '*' || line[0] == ':' || line[0] == '-' {
			line, _, _ = strings.Cut(line, " [")
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

// awaitTables waits until both families' are as the reference kubelet makes them.
func awaitTables(t *testing.T, again func()) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); ; again() {
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

// sections are the tables, sorted by name: programs show them in different orders. One that is
// as the kernel makes it is left out.
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

// The kernel tells of every change of nftables' chains.
func TestFlushOfNftablesIsSeen(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	use(t, "nft")
	keep(t, clock.RealClock{})
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

// It does not tell of changes of the older tables: they are looked at every minute.
func TestFlushOfLegacyTablesIsSeen(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	use(t, "legacy")
	c := clocktesting.NewFakeClock(time.Now())
	keep(t, c)
	awaitTables(t, pause)
	sh(t, "for i in iptables ip6tables; do for t in filter nat mangle; do $i -t $t -F; $i -t $t -X; done; done")
	pause()
	if strings.Contains(tables(t, "iptables"), hint) {
		t.Error("it was made again before anybody could look")
	}
	awaitTables(t, func() { pause(); c.Step(look) })
}

// What is there already stays as it is, and is not made twice.
func TestChainsAreMadeOnce(t *testing.T) {
	if !inOwnNetwork(t) {
		return
	}
	use(t, "nft")
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
	var said strings.Builder
	k, err := New(Deps{Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(t.Context()); err != nil || !strings.Contains(said.String(), "no iptables on this node") {
		t.Errorf("%v, and it said %q", err, said.String())
	}
}
