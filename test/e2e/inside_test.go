package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// insideCommands are the commands of the recording, without output that does not depend on the kubelet:
// process limits are set by the runtime, PATH by the image.
var insideCommands = map[string]string{
	"full": `cat /etc/hosts /etc/resolv.conf; env | grep -v ^PATH= | sort; mount | grep -vE "proc|sys|dev" | grep -v ^overlay;
		id; hostname; cat /proc/self/oom_score_adj`,
	"secure": `id; hostname -f; ls -la /data; cat /proc/self/status | grep -iE "cap|seccomp|nonew"; cat /etc/hosts`,
}

// compareInside compares what a pod's first container sees with the recording.
func compareInside(t *testing.T, now view, node *bed.Box, pod *corev1.Pod) {
	t.Helper()
	if pod == nil {
		t.Fatal("the pod did not reach its recorded status")
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	seen, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", "look", id, "sh", "-c", insideCommands[pod.Name])
	if err != nil {
		t.Fatal(err)
	}
	want := recording.text(string(testdata(t, "golden/inside-"+pod.Name+".txt")))
	report(t, differences(pod.Name+" inside", lines(want), lines(now.text(seen))))
}

func lines(text string) any {
	var all []any
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimRight(line, "\n"))
	}
	return all
}
