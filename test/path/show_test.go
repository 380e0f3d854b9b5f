package path

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
)

// showRuntime lists the runtime's sandboxes and containers.
func (w *testNode) showRuntime() []string {
	var lines []string
	containers := w.runtime.Containers()
	for _, s := range w.runtime.Sandboxes() {
		state := "ready"
		if s.State != runtimeapi.PodSandboxState_SANDBOX_READY {
			state = "not ready"
		}
		lines = append(lines, fmt.Sprintf("sandbox %s attempt=%d %s", s.Metadata.Name, s.Metadata.Attempt, state))
		var inside []string
		for _, c := range containers {
			if c.Labels[cri.LabelPodUID] != s.Metadata.Uid || sandboxOf(w, c) != s.Id {
				continue
			}
			inside = append(inside, "  "+showContainer(c))
		}
		slices.Sort(inside) // containers are created in parallel
		lines = append(lines, inside...)
	}
	for _, c := range containers {
		if sandboxOf(w, c) == "" {
			lines = append(lines, showContainer(c)+" without a sandbox")
		}
	}
	return lines
}

func showContainer(c *runtimeapi.ContainerStatus) string {
	state := strings.ToLower(strings.TrimPrefix(c.State.String(), "CONTAINER_"))
	if c.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		state += fmt.Sprintf(" %d", c.ExitCode)
	}
	return fmt.Sprintf("%s %s attempt=%d", c.Metadata.Name, state, c.Metadata.Attempt)
}

// sandboxOf returns the newest sandbox of the container's pod that is not newer than the container.
func sandboxOf(w *testNode, c *runtimeapi.ContainerStatus) string {
	id := ""
	for _, s := range w.runtime.Sandboxes() {
		if s.Metadata.Uid == c.Labels[cri.LabelPodUID] && s.CreatedAt <= c.CreatedAt {
			id = s.Id
		}
	}
	return id
}

// showStatus shows the status of API pods as published, and of static pods as the agent has it.
func (w *testNode) showStatus(names ...string) []string {
	var lines []string
	for _, p := range append(w.store.list(), w.staticPods()...) {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		line := p.Name + " " + string(p.Status.Phase)
		if isReady(p) {
			line += " ready"
		}
		if p.Status.Reason != "" {
			line += " " + p.Status.Reason
		}
		lines = append(lines, line)
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			lines = append(lines, fmt.Sprintf("  %s %s, %d restarts", c.Name, showState(c.State), c.RestartCount))
		}
	}
	return lines
}

func (w *testNode) staticPods() []*v1.Pod {
	var all []*v1.Pod
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, p := range w.store.static {
		p = p.DeepCopy()
		p.Status, _ = w.agent.status.Get(p.UID)
		all = append(all, p)
	}
	return all
}

func isReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

func showState(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("terminated %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	}
	return "unknown"
}

// showActions lists the runtime calls that change something, since the last showActions or showCalls,
// sorted by time and then by name.
func (w *testNode) showActions() []string {
	calls := w.takeCalls(isAction)
	slices.SortFunc(calls, func(a, b fakecri.Call) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Method, b.Method), strings.Compare(w.subject(a), w.subject(b)))
	})
	var lines []string
	for _, call := range calls {
		lines = append(lines, call.Method+" "+w.subject(call))
	}
	return lines
}

// showCalls counts all runtime calls since the last showActions or showCalls.
func (w *testNode) showCalls() []string {
	counts := map[string]int{}
	for _, call := range w.takeCalls(func(fakecri.Call) bool { return true }) {
		name := call.Method
		if isRelist(call) {
			name += " of all pods"
		}
		counts[name]++
	}
	var lines []string
	for name, n := range counts {
		lines = append(lines, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(lines)
	return lines
}

func (w *testNode) takeCalls(which func(fakecri.Call) bool) []fakecri.Call {
	calls := w.runtime.Calls()
	w.runtime.ResetCalls()
	return slices.DeleteFunc(calls, func(c fakecri.Call) bool { return !which(c) })
}

func isAction(c fakecri.Call) bool {
	for _, verb := range []string{"Run", "Stop", "Remove", "Create", "Start", "Pull"} {
		if strings.HasPrefix(c.Method, verb) {
			return true
		}
	}
	return false
}

func isRelist(c fakecri.Call) bool {
	switch r := c.Request.(type) {
	case *runtimeapi.ListPodSandboxRequest:
		return len(r.GetFilter().GetLabelSelector()) == 0
	case *runtimeapi.ListContainersRequest:
		return len(r.GetFilter().GetLabelSelector()) == 0
	}
	return false
}

// subject is the object of a call.
func (w *testNode) subject(c fakecri.Call) string {
	switch r := c.Request.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return fmt.Sprintf("%s attempt=%d", r.Config.Metadata.Name, r.Config.Metadata.Attempt)
	case *runtimeapi.CreateContainerRequest:
		return fmt.Sprintf("%s attempt=%d", r.Config.Metadata.Name, r.Config.Metadata.Attempt)
	case *runtimeapi.StartContainerRequest:
		return w.containerName(r.ContainerId)
	case *runtimeapi.StopContainerRequest:
		return fmt.Sprintf("%s grace=%s", w.containerName(r.ContainerId), time.Duration(r.Timeout)*time.Second)
	case *runtimeapi.RemoveContainerRequest:
		return w.containerName(r.ContainerId)
	case *runtimeapi.PullImageRequest:
		return r.Image.Image
	case interface{ GetPodSandboxId() string }:
		return r.GetPodSandboxId()
	}
	return ""
}

// expect compares lines.
func (w *testNode) expect(got, want []string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// showLeftovers lists everything that exists of pods.
func (w *testNode) showLeftovers() []string {
	lines := append(w.showStatus(), w.showRuntime()...)
	groups, _ := w.cgroups.Pods()
	for _, uid := range groups {
		lines = append(lines, "cgroup "+string(uid))
	}
	for _, dir := range []string{"pods", "logs"} {
		entries, _ := os.ReadDir(filepath.Join(w.root, dir))
		for _, e := range entries {
			lines = append(lines, dir+" "+e.Name())
		}
	}
	for _, p := range w.agent.workers.Active() {
		lines = append(lines, "worker "+pod.FullName(p))
	}
	return lines
}
