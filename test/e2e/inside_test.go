package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"swiftlet/test/bed"
)

// lookInside are the commands of the recording, less what is no affair of a kubelet: the
// limits of processes are the runtime's, PATH is the image's.
var lookInside = map[string]string{
	"full": `cat /etc/hosts /etc/resolv.conf; env | grep -v ^PATH= | sort; mount | grep -vE "proc|sys|dev" | grep -v ^overlay;
		id; hostname; cat /proc/self/oom_score_adj`,
	"secure": `id; hostname -f; ls -la /data; cat /proc/self/status | grep -iE "cap|seccomp|nonew"; cat /etc/hosts`,
}

// compareInside wants a pod's first container to see what it saw in the recording.
func compareInside(t *testing.T, now view, node *bed.Box, pod *corev1.Pod) {
	t.Helper()
	if pod == nil {
		t.Fatal("no pod to look into")
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	seen, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", "look", id, "sh", "-c", lookInside[pod.Name])
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
