package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestKubectlTop runs kubectl top with a real metrics-server, which scrapes the node.
func TestKubectlTop(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	if err := cluster.StartMetricsServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	startPod(t, space, cpuBurner("burner", node.Name()))
	// metrics-server needs two scrapes, ten seconds apart, and the API server must discover it.
	cells := awaitTop(t, "pod", "burner", "-n", space, "--no-headers", "--containers")
	if len(cells) != 4 || cells[0] != "burner" || cells[1] != "c" {
		t.Fatalf("top of the pod: %q", cells)
	}
	cpu, err := resource.ParseQuantity(cells[2])
	if err != nil {
		t.Fatal(err)
	}
	if milli := cpu.MilliValue(); milli < 50 || milli > 250 {
		t.Errorf("CPU usage of the pod is %s, want about 200m", cells[2])
	}
	if memory, err := resource.ParseQuantity(cells[3]); err != nil || memory.Value() > 64<<20 {
		t.Errorf("memory usage of the pod is %s (%v)", cells[3], err)
	}
	cells = awaitTop(t, "node", node.Name(), "--no-headers")
	if len(cells) != 5 || cells[0] != node.Name() {
		t.Fatalf("top of the node: %q", cells)
	}
	for i, amount := range map[int]string{1: cells[1], 3: cells[3]} {
		if q, err := resource.ParseQuantity(amount); err != nil || q.IsZero() {
			t.Errorf("cell %d of the node is %q (%v)", i, amount, err)
		}
	}
}

// awaitTop retries until kubectl top succeeds.
func awaitTop(t *testing.T, args ...string) []string {
	t.Helper()
	var err error
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		var out string
		if out, err = tryKubectl(t, append([]string{"top"}, args...)...); err == nil {
			return strings.Fields(out)
		}
	}
	t.Fatal(err)
	return nil
}
