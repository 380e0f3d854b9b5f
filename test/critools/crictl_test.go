package critools

import (
	"encoding/json"
	"strings"
	"testing"
)

// The parts of crictl's output that the test reads.
type (
	sandboxList struct {
		Items []struct {
			ID       string
			Metadata struct{ Namespace string }
		}
	}
	containerList struct{ Containers []struct{ ID string } }
	statsList     struct {
		Stats []struct {
			Memory struct{ WorkingSetBytes struct{ Value string } }
		}
	}
)

// TestCrictl inspects the agent's pods with crictl.
func TestCrictl(t *testing.T) {
	cluster.ShowLogs(t)
	before := podStatuses(t)
	var sandboxes sandboxList
	crictlJSON(t, &sandboxes, "pods", "--name", "^plain$", "--state", "ready", "-o", "json")
	if len(sandboxes.Items) != 1 || sandboxes.Items[0].Metadata.Namespace != "default" {
		t.Fatalf("crictl pods: %+v; want the sandbox of pod default/plain", sandboxes.Items)
	}
	var containers containerList
	crictlJSON(t, &containers, "ps", "--pod", sandboxes.Items[0].ID, "-o", "json")
	if len(containers.Containers) != 1 {
		t.Fatalf("crictl ps: %+v; want one container", containers.Containers)
	}
	id := containers.Containers[0].ID
	if want := before["plain"].ContainerStatuses[0].ContainerID; "containerd://"+id != want {
		t.Errorf("crictl ps: container %s; want %s", id, want)
	}
	if out := crictl(t, "logs", id); out != "hello from plain\n" {
		t.Errorf("crictl logs: %q", out)
	}
	if out := crictl(t, "exec", id, "echo", "inside"); out != "inside\n" {
		t.Errorf("crictl exec: %q", out)
	}
	if out := crictl(t, "exec", "--sync", id, "hostname"); strings.TrimSpace(out) != "plain" {
		t.Errorf("crictl exec --sync: %q", out)
	}
	var stats statsList
	crictlJSON(t, &stats, "stats", "--id", id, "-o", "json")
	if len(stats.Stats) != 1 || stats.Stats[0].Memory.WorkingSetBytes.Value == "" {
		t.Errorf("crictl stats: %+v; want one container with memory usage", stats.Stats)
	}
	if out := crictl(t, "inspect", id); !strings.Contains(out, `"io.kubernetes.pod.name": "plain"`) {
		t.Errorf("crictl inspect does not have the pod's name: %s", out)
	}
	for name, status := range podStatuses(t) {
		if status.ContainerStatuses[0].ContainerID != before[name].ContainerStatuses[0].ContainerID {
			t.Errorf("pod %s has a new container", name)
		}
	}
}

func crictl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shared.Exec(t.Context(), append([]string{programs.path("crictl"), "--runtime-endpoint", endpoint}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func crictlJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	out := crictl(t, args...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("crictl %v: %v: %s", args, err, out)
	}
}
