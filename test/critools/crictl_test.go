package critools

import (
	"encoding/json"
	"strings"
	"testing"
)

// The parts of crictl's answers that are looked at.
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

// TestCrictl looks at the agent's pods as people do.
func TestCrictl(t *testing.T) {
	cluster.ShowLogs(t)
	before := podStatuses(t)
	var sandboxes sandboxList
	crictlJSON(t, &sandboxes, "pods", "--name", "^plain$", "--state", "ready", "-o", "json")
	if len(sandboxes.Items) != 1 || sandboxes.Items[0].Metadata.Namespace != "default" {
		t.Fatalf("crictl pods: %+v; want the one of pod default/plain", sandboxes.Items)
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
	if said := crictl(t, "logs", id); said != "hello from plain\n" {
		t.Errorf("crictl logs: %q", said)
	}
	if said := crictl(t, "exec", id, "echo", "inside"); said != "inside\n" {
		t.Errorf("crictl exec: %q", said)
	}
	if said := crictl(t, "exec", "--sync", id, "hostname"); strings.TrimSpace(said) != "plain" {
		t.Errorf("crictl exec --sync: %q", said)
	}
	var stats statsList
	crictlJSON(t, &stats, "stats", "--id", id, "-o", "json")
	if len(stats.Stats) != 1 || stats.Stats[0].Memory.WorkingSetBytes.Value == "" {
		t.Errorf("crictl stats: %+v; want one container that uses memory", stats.Stats)
	}
	if said := crictl(t, "inspect", id); !strings.Contains(said, `"io.kubernetes.pod.name": "plain"`) {
		t.Errorf("crictl inspect does not tell the pod: %s", said)
	}
	for name, status := range podStatuses(t) {
		if status.ContainerStatuses[0].ContainerID != before[name].ContainerStatuses[0].ContainerID {
			t.Errorf("pod %s has a new container", name)
		}
	}
}

func crictl(t *testing.T, args ...string) string {
	t.Helper()
	said, err := shared.Exec(t.Context(), append([]string{programs.path("crictl"), "--runtime-endpoint", endpoint}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func crictlJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	said := crictl(t, args...)
	if err := json.Unmarshal([]byte(said), into); err != nil {
		t.Fatalf("crictl %v: %v: %s", args, err, said)
	}
}
