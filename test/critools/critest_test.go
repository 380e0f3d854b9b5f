package critools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"swiftlet/test/bed"
	"swiftlet/test/conformance"
)

// limit bounds a run of critest on two nodes at the same time, on a loaded machine.
const limit = 20 * time.Minute

// missingImage is a test that needs an image with a certain digest, which cannot be built here.
const missingImage = "public image with digest should be pulled"

// TestCritestWithAgent runs critest on a node without an agent and on one with an agent. Every test
// must have the same outcome on both, and the agent's pods must not change.
func TestCritestWithAgent(t *testing.T) {
	cluster.ShowLogs(t)
	alone, err := addNode(t.Context(), "alone")
	if err != nil {
		t.Fatal(err)
	}
	before := podStatuses(t)

	outcomes, err := critestOn(t.Context(), outDir(t), alone, shared)
	if err != nil {
		t.Fatal(err)
	}
	for name, status := range podStatuses(t) {
		if !reflect.DeepEqual(status, before[name]) {
			t.Errorf("the status of pod %s changed from\n%+v\nto\n%+v", name, before[name], status)
		}
	}
	for _, d := range conformance.Compare(outcomes[shared.Name()], outcomes[alone.Name()]) {
		t.Errorf("%s\nwith agent: %s, without: %s\n%s\n%s", d.Test, d.Ours, d.Reference, d.Output, d.Message)
	}
	counts, failures := conformance.Summarize(outcomes[shared.Name()])
	t.Logf("critest with agent: %v", counts)
	for _, f := range failures {
		if !strings.Contains(f.Test, missingImage) {
			t.Errorf("%s failed on both: %s", f.Test, firstLine(f.Message))
		}
	}
	if counts["passed"] < 90 {
		t.Errorf("%d tests passed; want at least 90", counts["passed"])
	}
	// The agent still works: it starts another pod.
	for _, args := range [][]string{
		{"run", "later", "--image=docker.io/library/busybox:1.36", "--restart=Never", "--command", "--", "sleep", "3600"},
		{"wait", "--for=condition=Ready", "pod/later", "--timeout=1m"},
		{"delete", "pod", "later", "--grace-period=1", "--timeout=1m"},
	} {
		if _, err := cluster.Kubectl(t.Context(), args...); err != nil {
			t.Error(err)
		}
	}
}

// critestOn runs critest on the nodes at the same time.
func critestOn(ctx context.Context, dir string, nodes ...*bed.Box) (map[string][]conformance.Outcome, error) {
	var (
		mu       sync.Mutex
		group    sync.WaitGroup
		failures error
	)
	all := map[string][]conformance.Outcome{}
	for _, node := range nodes {
		group.Go(func() {
			out := filepath.Join(dir, node.Name())
			err := os.MkdirAll(out, 0o755)
			var outcomes []conformance.Outcome
			if err == nil {
				outcomes, err = RunCritest(ctx, programs, node, out, limit)
			}
			mu.Lock()
			defer mu.Unlock()
			all[node.Name()] = outcomes
			failures = errors.Join(failures, err)
		})
	}
	group.Wait()
	return all, failures
}

// outDir is the directory for critest's logs, which stay after the test.
func outDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin/critest")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
