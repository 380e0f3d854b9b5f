package limits

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// script is a container of a pod manifest that runs a shell script.
func script(name, resources, text string) string {
	return fmt.Sprintf("{name: %s, image: docker.io/library/busybox:1.36, command: [sh, -c, %q], resources: {%s}}", name, text, resources)
}

// A pod that exceeds its limits affects only itself: the node can run other pods afterwards.
func TestOverLimit(t *testing.T) {
	n := startNode(t, "podPidsLimit: 40\n")
	// On cgroup v1 the runtime gets a notification of the OOM kill. If the container exited at the
	// same moment, the runtime might see the exit first.
	hog := "(x=hog; while :; do x=$x$x; done); code=$?; sleep 2; exit $code"
	pods := n.run(map[string]string{
		"hog":  pod("hog", "restartPolicy: Never, containers: ["+script("app", "limits: {memory: 24Mi}", hog)+"]"),
		"bomb": pod("bomb", "restartPolicy: Never, containers: ["+script("app", "", "for i in $(seq 200); do sleep 1000 & done; wait")+"]"),
	}, terminated)
	want := map[string]string{
		"hog":  "Failed OOMKilled 137",
		"bomb": "Failed Error 2", // the shell exits if it cannot fork
	}
	for _, p := range pods {
		end := p.Status.ContainerStatuses[0].State.Terminated
		if got := fmt.Sprintf("%s %s %d", p.Status.Phase, end.Reason, end.ExitCode); got != want[p.Name] {
			t.Errorf("%s: %s, want %s", p.Name, got, want[p.Name])
		}
	}
	n.add("after", pod("after", "containers: ["+container("app", "")+"]"))
	n.await(3, func(p *v1.Pod) error {
		if p.Name != "after" {
			return nil
		}
		return running(p)
	})
}

// terminated checks that all containers of the pod have terminated.
func terminated(p *v1.Pod) error {
	if len(p.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("has no status yet")
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated == nil {
			return fmt.Errorf("container %s: %v", s.Name, s.State)
		}
	}
	return nil
}
