package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

// fullDiskConfig has state files of all managers, and no eviction: pods must run on a full disk.
const fullDiskConfig = `
cpuManagerPolicy: static
systemReserved: {cpu: 500m, memory: 100Mi}
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 200Mi}}]
`

// TestDiskErrorsOnFullDisk fills the disk of the agent's root directory. The agent keeps running and starts
// again, running pods are not restarted, and what could not be done is done when there is space again.
func TestDiskErrorsOnFullDisk(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("what the reference does on a full disk is not specified")
	}
	t.Parallel()
	counts := tally.New(t, "disk-errors")
	node := bareNode(t, "full")
	if _, err := node.Exec(t.Context(), "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", "/var/lib/kubelet"); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, node, fullDiskConfig)
	space := namespace(t)
	before := startPod(t, space, sleeper("before", node.Name()))
	// The last page too: dd ends with an error when there is no more space.
	_, _ = node.Exec(t.Context(), "sh", "-c", "dd if=/dev/zero of=/var/lib/kubelet/fill bs=64k; dd if=/dev/zero of=/var/lib/kubelet/fill2 bs=1")
	create(t, space, sleeper("during", node.Name()))
	log := node.Log("kubelet")
	eventually(t, timeout, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "no space left on device") && strings.Contains(line, "/var/lib/kubelet/") {
				return ""
			}
		}
		return "the log names no file without space"
	})
	if err := node.KillKubelet(); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, node, fullDiskConfig)
	awaitPod(t, space, "before", timeout, unchanged(before))
	if _, err := node.Exec(t.Context(), "rm", "/var/lib/kubelet/fill", "/var/lib/kubelet/fill2"); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, space, "during", 2*timeout, ready)
	awaitPod(t, space, "before", timeout, unchanged(before))
	counts.Fault(!t.Failed())
}

// unchanged checks that the pod is ready in the same container.
func unchanged(before *corev1.Pod) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if missing := ready(p); missing != "" {
			return missing
		}
		if was, is := before.Status.ContainerStatuses[0], p.Status.ContainerStatuses[0]; is.ContainerID != was.ContainerID || is.RestartCount != 0 {
			return fmt.Sprintf("its container is %s after %d restarts, not %s", is.ContainerID, is.RestartCount, was.ContainerID)
		}
		return ""
	}
}
