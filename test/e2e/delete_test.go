package e2e

import (
	"strings"
	"sync"
	"testing"
	"time"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestRunAndDelete does what every newcomer does first. A deleted pod is gone from the API
// within a second of its last container's exit. It runs alone: what it measures is the
// agent, not how many tests share two cores with it.
func TestRunAndDelete(t *testing.T) {
	node := steadyNode(t)
	space := namespace(t)
	kubectl(t, "-n", space, "run", "hello", "--image="+images.Busybox,
		`--overrides={"spec":{"terminationGracePeriodSeconds":10,"nodeSelector":{"kubernetes.io/hostname":"`+node.Name()+`"}}}`,
		"--command", "--", "sh", "-c", untilTold)
	pod := awaitPod(t, space, "hello", usual, ready)
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")

	exited := watchExit(t, node, id)
	kubectl(t, "-n", space, "delete", "pod", "hello", "--wait=false")
	awaitPod(t, space, "hello", usual, gone)
	took := time.Since(<-exited)
	t.Logf("gone %v after its container", took)
	if limit := time.Second; took > limit && kubelet == bed.Ours {
		t.Errorf("gone from the API %v after the last container's exit, want at most %v", took, limit)
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

// watchExit tells when the container's first process has ended.
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
