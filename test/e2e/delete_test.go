package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestRunAndDelete: a deleted pod is removed from the API server within a second after its last
// container's exit. It does not run in parallel with other tests, as it measures time.
func TestRunAndDelete(t *testing.T) {
	node := steadyNode(t)
	space := namespace(t)
	kubectl(t, "-n", space, "run", "hello", "--image="+images.Busybox,
		`--overrides={"spec":{"terminationGracePeriodSeconds":10,"nodeSelector":{"kubernetes.io/hostname":"`+node.Name()+`"}}}`,
		"--command", "--", "sh", "-c", exitOnTerm)
	pod := awaitPod(t, space, "hello", timeout, ready)
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")

	exited := watchExit(t, node, id)
	kubectl(t, "-n", space, "delete", "pod", "hello", "--wait=false")
	awaitPod(t, space, "hello", timeout, gone)
	took := time.Since(<-exited)
	t.Logf("deleted %v after the container's exit", took)
	if limit := time.Second; took > limit && kubelet == bed.Ours {
		t.Errorf("deleted from the API server %v after the last container's exit, want at most %v", took, limit)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// watchExit sends the time when the container's first process has exited.
func watchExit(t *testing.T, node *bed.Box, container string) <-chan time.Time {
	t.Helper()
	tasks, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "ls")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(tasks, container)
	columns := strings.Fields(line)
	if len(columns) < 2 {
		t.Fatalf("container %s has no process:\n%s", container, tasks)
	}
	exited := make(chan time.Time, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer close(exited)
		if _, err := node.Exec(t.Context(), "tail", "--pid="+columns[0], "--sleep-interval=0.005", "-f", "/dev/null"); err != nil {
			t.Error(err)
			return
		}
		exited <- time.Now()
	})
	t.Cleanup(watching.Wait)
	return exited
}
