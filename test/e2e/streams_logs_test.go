package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
	"swiftlet/test/bed"
)

func TestKubectlLogs(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := scripted("talker", node.Name(), "for i in 1 2 3; do echo line $i; done; echo oops")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, space, pod)
	awaitPod(t, space, "talker", timeout, func(p *corev1.Pod) string {
		if p == nil || p.Status.Phase != corev1.PodSucceeded {
			return "the pod has not succeeded"
		}
		return ""
	})
	all := "line 1\nline 2\nline 3\noops\n"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all":        {nil, all},
		"container":  {[]string{"-c", "c"}, all},
		"tail":       {[]string{"--tail=2"}, "line 3\noops\n"},
		"no tail":    {[]string{"--tail=0"}, ""},
		"limit":      {[]string{"--limit-bytes=8"}, "line 1\nl"},
		"since":      {[]string{"--since=1h"}, all},
		"since time": {[]string{"--since-time=2999-01-01T00:00:00Z"}, ""},
		"follow":     {[]string{"-f"}, all},
		"prefix":     {[]string{"--prefix", "--tail=1"}, "[pod/talker/c] oops\n"},
	} {
		if got := kubectl(t, append([]string{"-n", space, "logs", "talker"}, c.args...)...); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	stamped := kubectl(t, "-n", space, "logs", "talker", "--timestamps", "--tail=1")
	stamp, rest, _ := strings.Cut(stamped, " ")
	if _, err := time.Parse("2006-01-02T15:04:05.000000000Z07:00", stamp); err != nil || rest != "oops\n" {
		t.Errorf("with timestamps: %q", stamped)
	}
}

// TestKubectlLogsErrors checks errors that were recorded from the reference.
func TestKubectlLogsErrors(t *testing.T) {
	t.Parallel()
	node := steadyNode(t)
	space := namespace(t)
	pod := scripted("odd", node.Name(), exitOnTerm)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "stuck", Image: "docker.io/library/none:1", ImagePullPolicy: corev1.PullNever})
	create(t, space, pod)
	awaitPod(t, space, "odd", timeout, func(p *corev1.Pod) string {
		for _, s := range p.Status.ContainerStatuses {
			if s.Name == "stuck" && s.State.Waiting != nil && s.State.Waiting.Reason == "ErrImageNeverPull" {
				return ""
			}
		}
		return "the container does not have ErrImageNeverPull yet"
	})
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"odd", "-c", "stuck"}, `container "stuck" in pod "odd" is waiting to start: ErrImageNeverPull`},
		{[]string{"odd", "-c", "missing"}, `container missing is not valid for pod odd`},
		{[]string{"odd", "-c", "c", "--previous"}, `previous terminated container "c" in pod "odd" not found`},
	} {
		out, err := tryKubectl(t, append([]string{"-n", space, "logs"}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %q %v, want error %s", c.args, out, err, c.want)
		}
	}
}

// TestKubectlLogsAcrossRotation follows a log that is rotated every few hundred lines, as by the kubelet:
// the file is renamed and the runtime opens a new one.
func TestKubectlLogsAcrossRotation(t *testing.T) { // not parallel: see streams_test.go
	if kubelet == bed.Reference {
		t.Skip("the reference loses lines")
	}
	node := steadyNode(t)
	space := namespace(t)
	const lines = 20000
	create(t, space, func() *corev1.Pod {
		// It starts counting when the file /go exists, after kubectl has connected.
		pod := scripted("counter", node.Name(), fmt.Sprintf(
			"echo ready; until [ -e /go ]; do sleep 0.05; done; i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); [ $((i%%100)) -gt 0 ] || sleep 0.01; done", lines))
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		return pod
	}())
	pod := awaitPod(t, space, "counter", timeout, ready)
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	runtime := runtimeOf(t, node)
	path := node.Path(fmt.Sprintf("/var/log/pods/%s_%s_%s/c/0.log", space, pod.Name, pod.UID))

	ctx, cancel := context.WithTimeout(t.Context(), 4*timeout)
	defer cancel()
	cmd, stderr := kubectlCommand(ctx, t, "-n", space, "logs", "-f", "counter")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := bufio.NewScanner(out)
	if !got.Scan() || got.Text() != "ready" {
		t.Fatalf("the log begins with %q: %v %s", got.Text(), got.Err(), stderr)
	}
	kubectl(t, "-n", space, "exec", "counter", "--", "touch", "/go")
	rotations := 0
	var over error
	for ; rotations < 60; rotations++ {
		if err := os.Rename(path, fmt.Sprintf("%s.20261115-0000%02d", path, rotations)); err != nil {
			t.Fatal(err)
		}
		if over = runtime.ReopenContainerLog(t.Context(), id); over != nil {
			break // the container has exited
		}
	}
	if rotations < 5 {
		t.Fatalf("rotated only %d times before the end: %v", rotations, over)
	}
	for i := range lines {
		if want := fmt.Sprint("line ", i); !got.Scan() || got.Text() != want {
			t.Fatalf("after %d rotations line %d is %q, want %q: %v", rotations, i, got.Text(), want, got.Err())
		}
	}
	if got.Scan() {
		t.Errorf("after the last line %q", got.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
}

// runtimeOf connects to a node's container runtime.
func runtimeOf(t *testing.T, node *bed.Box) *cri.Client {
	t.Helper()
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: node.Inside("/run/containerd/containerd.sock"), RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
