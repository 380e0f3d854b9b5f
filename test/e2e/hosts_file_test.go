package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// TestHugeHostsFile: a container makes its hosts file huge and fails. The agent compares the file at
// every restart: it must not read all of it, and the next container must have a correct one.
func TestHugeHostsFile(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "huge-hosts")
	in := clearedNamespace(t)
	before := peakMemory(t, node)
	pod := scripted("huge", node.Name(), "cp /etc/hosts /dev/termination-log; truncate -s 3G /etc/hosts; exit 1")
	create(t, in, pod)
	made := awaitPod(t, in, "huge", 2*timeout, func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return "the pod has no container"
		}
		s := p.Status.ContainerStatuses[0]
		if s.RestartCount < 1 || s.State.Running != nil || s.State.Terminated == nil && s.LastTerminationState.Terminated == nil {
			return fmt.Sprintf("the container has not exited twice: %+v", s)
		}
		return ""
	})
	s := made.Status.ContainerStatuses[0]
	ended := s.State.Terminated
	if ended == nil {
		ended = s.LastTerminationState.Terminated
	}
	if want := made.Status.PodIP + "\thuge\n"; ended.ExitCode != 1 || !strings.HasPrefix(ended.Message, "# Kubernetes-managed hosts file.\n") || !strings.HasSuffix(ended.Message, want) {
		t.Errorf("restart %d: exit code %d, hosts file\n%q", s.RestartCount, ended.ExitCode, ended.Message)
	}
	after := peakMemory(t, node)
	t.Logf("peak memory of the kubelet: %d MB before, %d MB after", before>>20, after>>20)
	if after > before+40<<20 {
		t.Errorf("the kubelet's memory peaked at %d MB, %d MB more than before", after>>20, (after-before)>>20)
	}
}

// peakMemory is the peak resident memory of the node's kubelet, in bytes.
func peakMemory(t *testing.T, node *bed.Box) int64 {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range processes {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // it has exited
		}
		// nsenter has the kubelet's arguments too, after its own.
		args := strings.Split(string(bytes.TrimSuffix(line, []byte{0})), "\x00")
		if len(args) < 2 || !strings.HasPrefix(args[1], "--kubeconfig=") || !slices.Contains(args, "--hostname-override="+node.Name()) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		fields := strings.Fields(rest)
		if len(fields) < 2 || fields[1] != "kB" {
			t.Fatalf("status of %s is\n%s", dir, status)
		}
		size, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return size << 10
	}
	t.Fatal("the kubelet is not running")
	return 0
}
