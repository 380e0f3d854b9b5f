package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"swiftlet/internal/cri"
	"swiftlet/test/bed"
)

// restartIfContainersLost restarts a containerd that has lost containers. containerd 2.4.2 does so when its client dies
// during the creation or start of a sandbox or container: CRI does not list it or cannot remove it until
// containerd restarts. Then the agent must remove it. Every leftover must belong to such a container;
// otherwise it is a bug of the agent, and the test fails.
func restartIfContainersLost(t *testing.T, node *bed.Box, left []podResource) {
	t.Helper()
	lost := lostByRuntime(t, node, left)
	var ours []podResource
	for _, l := range left {
		if !slices.ContainsFunc(lost, func(c lostContainer) bool { return c.owns(l) }) {
			ours = append(ours, l)
		}
	}
	if len(ours) > 0 {
		t.Fatalf("left by the agent:\n%s\nleft by containerd:\n%v", formatResources(ours), lost)
	}
	t.Logf("restarting containerd, which has lost:\n%v", lost)
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lostContainer is a container or sandbox of containerd that CRI cannot remove.
type lostContainer struct {
	id, why string
	// What belongs to it: its pod, its sandbox, its network namespace and the host's end of its veth.
	uid, sandbox, netns, link string
}

func (c lostContainer) String() string { return c.id + ": " + c.why }

// owns reports whether a resource on the node belongs to the container or its pod.
func (c lostContainer) owns(l podResource) bool {
	for _, mark := range []string{c.id, c.uid, c.sandbox, c.netns} {
		if mark != "" && strings.Contains(l.name, mark) {
			return true
		}
	}
	return l.kind == "links" && l.name == c.link
}

// lostByRuntime returns the remaining containers that containerd has lost: CRI does not list them, or its log
// owns an error that their task could not be deleted.
func lostByRuntime(t *testing.T, node *bed.Box, left []podResource) []lostContainer {
	t.Helper()
	listed := listedByCRI(t, node)
	log, err := os.ReadFile(node.Log("containerd"))
	if err != nil {
		t.Fatal(err)
	}
	var lost []lostContainer
	for _, l := range left {
		if l.kind != "containers" {
			continue
		}
		c := lostContainer{id: l.name}
		switch {
		case !listed[l.name]:
			c.why = "CRI does not list it"
		case slices.ContainsFunc(strings.Split(string(log), "\n"), func(line string) bool {
			return strings.Contains(line, "cannot delete running task "+l.name)
		}):
			c.why = "its task could not be deleted"
		default:
			continue
		}
		c.readOwned(t, node)
		lost = append(lost, c)
	}
	return lost
}

// listedByCRI returns the IDs that CRI lists.
func listedByCRI(t *testing.T, node *bed.Box) map[string]bool {
	t.Helper()
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: node.Inside("/run/containerd/containerd.sock"), RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sandboxes, err := client.ListPodSandboxes(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	containers, err := client.ListContainers(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, s := range sandboxes {
		listed[s.Id] = true
	}
	for _, c := range containers {
		listed[c.Id] = true
	}
	return listed
}

// readOwned reads what else on the node belongs to the container.
func (c *lostContainer) readOwned(t *testing.T, node *bed.Box) {
	t.Helper()
	text, err := node.Exec(t.Context(), "ctr", "-n", "k8s.io", "containers", "info", c.id)
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Labels map[string]string
		Spec   struct {
			Annotations map[string]string `json:"annotations"`
			Linux       struct {
				Namespaces []struct{ Type, Path string }
			} `json:"linux"`
		}
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatalf("ctr containers info %s: %v", c.id, err)
	}
	c.uid, c.sandbox = info.Labels["io.kubernetes.pod.uid"], info.Spec.Annotations["io.kubernetes.cri.sandbox-id"]
	for _, n := range info.Spec.Linux.Namespaces {
		if n.Type == "network" && strings.Contains(n.Path, "/netns/") {
			c.netns = n.Path[strings.LastIndex(n.Path, "/")+1:]
		}
	}
	c.link = hostLink(t, node, c.netns)
}

// hostLink returns the host's end of a pod's veth, or "".
func hostLink(t *testing.T, node *bed.Box, netns string) string {
	t.Helper()
	if netns == "" {
		return ""
	}
	inside, err := node.Exec(t.Context(), "ip", "-n", netns, "-o", "link", "show", "eth0")
	if err != nil {
		return "" // the network namespace is gone, and so is the veth
	}
	_, rest, _ := strings.Cut(inside, "eth0@if")
	index, _, _ := strings.Cut(rest, ":")
	outside, err := node.Exec(t.Context(), "ip", "-o", "link")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(outside) {
		if name, found := strings.CutPrefix(line, fmt.Sprintf("%s: ", index)); found {
			name, _, _ = strings.Cut(name, "@")
			return name
		}
	}
	return ""
}
