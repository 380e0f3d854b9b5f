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

// forgetLost restarts a runtime that has lost sight of containers. containerd 2.4.2 does
// when its client dies while it makes a sandbox or a container, or starts one: CRI shows no
// such thing or cannot remove it, until containerd looks anew. The agent must then take it
// away. Each thing left must be one of those, or a part of one; anything else is ours, and
// fails the test.
func forgetLost(t *testing.T, node *bed.Box, left []leaving) {
	t.Helper()
	lost := lostByRuntime(t, node, left)
	var ours []leaving
	for _, l := range left {
		if !slices.ContainsFunc(lost, func(c lostContainer) bool { return c.has(l) }) {
			ours = append(ours, l)
		}
	}
	if len(ours) > 0 {
		t.Fatalf("left behind:\n%s\nand by containerd:\n%v", itemised(ours), lost)
	}
	t.Logf("containerd has lost to the agent's death, and is restarted:\n%v", lost)
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lostContainer is a container or sandbox that containerd holds and CRI cannot take away.
type lostContainer struct {
	id, why string
	// What belongs to it: its pod, its sandbox, which must outlive it, its network and the
	// link that leads there.
	uid, sandbox, netns, link string
}

func (c lostContainer) String() string { return c.id + ": " + c.why }

// has reports whether something on the node is the container's, or its pod's.
func (c lostContainer) has(l leaving) bool {
	for _, mark := range []string{c.id, c.uid, c.sandbox, c.netns} {
		if mark != "" && strings.Contains(l.name, mark) {
			return true
		}
	}
	return l.kind == "links" && l.name == c.link
}

// lostByRuntime asks containerd about the containers that are left: CRI does not list them,
// or its log says of each that its task could not be deleted.
func lostByRuntime(t *testing.T, node *bed.Box, left []leaving) []lostContainer {
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
		c.belongings(t, node)
		lost = append(lost, c)
	}
	return lost
}

// listedByCRI is what containerd shows to the agent.
func listedByCRI(t *testing.T, node *bed.Box) map[string]bool {
	t.Helper()
	client, err := cri.Dial(cri.Config{RuntimeEndpoint: node.Inside("/run/containerd/containerd.sock"), RequestTimeout: usual})
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

// belongings finds out what else on the node is the container's.
func (c *lostContainer) belongings(t *testing.T, node *bed.Box) {
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
		t.Fatalf("containerd's word on %s: %v", c.id, err)
	}
	c.uid, c.sandbox = info.Labels["io.kubernetes.pod.uid"], info.Spec.Annotations["io.kubernetes.cri.sandbox-id"]
	for _, n := range info.Spec.Linux.Namespaces {
		if n.Type == "network" && strings.Contains(n.Path, "/netns/") {
			c.netns = n.Path[strings.LastIndex(n.Path, "/")+1:]
		}
	}
	c.link = hostLink(t, node, c.netns)
}

// hostLink is the node's end of the link into a pod's network; "" where there is none.
func hostLink(t *testing.T, node *bed.Box, netns string) string {
	t.Helper()
	if netns == "" {
		return ""
	}
	inside, err := node.Exec(t.Context(), "ip", "-n", netns, "-o", "link", "show", "eth0")
	if err != nil {
		return "" // the network is gone, and the link with it
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
