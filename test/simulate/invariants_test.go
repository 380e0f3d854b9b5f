package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/fakeapi"
)

// checkDeletion checks that the agent deletes a pod's object only when nothing of the pod uses the node.
func (n *node) checkDeletion(call fakeapi.Call) {
	if call.Verb != "delete" || call.Resource != "pods" {
		return
	}
	for _, p := range fakeapi.List[v1.Pod](n.api) {
		if p.Name != call.Name || pod.IsMirror(p) {
			continue
		}
		if slices.Contains(n.kernel.PodCgroups(), p.UID) {
			n.world.violate("leak: %s is deleted while its cgroup exists", p.Name)
		}
		if mounts := n.kernel.MountPoints(n.podDir(p.UID)); len(mounts) > 0 {
			n.world.violate("leak: %s is deleted while %s is mounted", p.Name, n.shorten(mounts[0]))
		}
		for _, c := range n.runtime.Containers() {
			if podOf(c.Labels).uid == string(p.UID) && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
				n.world.violate("unwanted: %s is deleted while %s runs", p.Name, c.Metadata.Name)
			}
		}
	}
}

// checkSettled checks that everything is as the sources want it.
func (w *workload) checkSettled() {
	pods := map[string]*v1.Pod{} // by the UID that the runtime knows
	mirrors := map[string]*v1.Pod{}
	for _, p := range fakeapi.List[v1.Pod](w.api) {
		switch {
		case pod.IsMirror(p):
			mirrors[p.Name] = p
			pods[p.Annotations[pod.AnnotationHash]] = p
		case p.DeletionTimestamp != nil:
			w.world.violate("lost: %s was deleted at %v and still exists: %s", p.Name, p.DeletionTimestamp, p.Status.Phase)
		default:
			pods[string(p.UID)] = p
		}
	}
	w.checkMirrors(mirrors)
	running := map[string][]*runtimeapi.ContainerStatus{}
	for _, c := range w.runtime.Containers() {
		if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		uid := podOf(c.Labels).uid
		if pods[uid] == nil {
			w.world.violate("unwanted: %s of %s runs", c.Metadata.Name, c.Labels["io.kubernetes.pod.name"])
		}
		running[uid] = append(running[uid], c)
	}
	for uid, p := range pods {
		w.checkStatus(p, running[uid])
		w.checkWanted(uid, p, running[uid])
		w.checkFiles(p)
	}
	w.checkNode()
}

// checkMirrors checks that each manifest has its mirror pod.
func (w *workload) checkMirrors(mirrors map[string]*v1.Pod) {
	for name, revision := range w.static {
		mirror := mirrors[name+"-"+nodeName]
		if mirror == nil && (w.uncertain[name] || w.mayEnd(name)) {
			continue // it has ended before the mirror could be created; the reference creates none then, too
		}
		if mirror == nil {
			w.world.violate("lost: static pod %s has no mirror", name)
		} else if mirror.Labels["revision"] != revision {
			w.world.violate("status: mirror of %s is of revision %s, not %s", name, mirror.Labels["revision"], revision)
		}
	}
	for name := range mirrors {
		if _, wanted := w.static[strings.TrimSuffix(name, "-"+nodeName)]; !wanted {
			w.world.violate("leak: mirror pod %s", name)
		}
	}
}

// mayEnd reports whether a container of the pod ends, so that the pod may end.
func (w *workload) mayEnd(name string) bool {
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	for container, b := range w.world.behaviours {
		if strings.HasPrefix(container, name+"/") && b.code+int32(b.exits) != 0 {
			return true
		}
	}
	return false
}

// checkStatus compares the published status with the runtime.
func (w *workload) checkStatus(p *v1.Pod, running []*runtimeapi.ContainerStatus) {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for _, c := range running {
		i := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.Metadata.Name })
		if i < 0 {
			w.world.violate("status: %s/%s runs and has no status", p.Name, c.Metadata.Name)
			continue
		}
		s := statuses[i]
		if s.State.Running == nil || !strings.HasSuffix(s.ContainerID, "://"+c.Id) || uint32(s.RestartCount) != c.Metadata.Attempt {
			w.world.violate("status: %s/%s runs as %s#%d, status has %s, restart count %d, %s", p.Name, s.Name, c.Id, c.Metadata.Attempt, s.ContainerID, s.RestartCount, showState(s.State))
		}
	}
	for _, s := range statuses {
		if s.State.Running != nil && !slices.ContainsFunc(running, func(c *runtimeapi.ContainerStatus) bool { return c.Metadata.Name == s.Name }) {
			w.world.violate("status: %s/%s is reported as running and does not run", p.Name, s.Name)
		}
	}
	ended := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	if ended && len(running) > 0 {
		w.world.violate("unwanted: %s is %s and %d containers run", p.Name, p.Status.Phase, len(running))
	}
}

func showState(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return fmt.Sprintf("terminated %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason + " " + s.Waiting.Message
	}
	return "unknown"
}

// checkWanted checks that a pod has the containers that it should have by now.
func (w *workload) checkWanted(uid string, p *v1.Pod, running []*runtimeapi.ContainerStatus) {
	name := strings.TrimSuffix(p.Name, "-"+nodeName)
	w.world.mu.Lock()
	failed := w.world.probeFailed[uid] && p.Spec.RestartPolicy == v1.RestartPolicyNever
	w.world.mu.Unlock()
	if failed || w.uncertain[name] || w.mayBeStuck(name, p) {
		return
	}
	ended, code := true, int32(0)
	for _, c := range p.Spec.Containers {
		b := w.behaviourOf(name, c.Name)
		always, onFailure := p.Spec.RestartPolicy == v1.RestartPolicyAlways, p.Spec.RestartPolicy == v1.RestartPolicyOnFailure
		runs := slices.ContainsFunc(running, func(r *runtimeapi.ContainerStatus) bool { return r.Metadata.Name == c.Name })
		switch {
		case b.exits == 0 && (b.code == 0 || always || onFailure): // flaky ones have exited often enough
			ended = false
			if !runs {
				w.world.violate("lost: %s/%s does not run: %s, %s", p.Name, c.Name, p.Status.Phase, w.showStatus(p, c.Name))
			}
		case b.exits < 0 && (always || onFailure && b.code != 0):
			ended = false // it crashes again and again
		default:
			code = max(code, b.code)
		}
	}
	want := v1.PodSucceeded
	if code != 0 {
		want = v1.PodFailed
	}
	if ended && p.Status.Phase != want {
		w.world.violate("status: %s has ended and is %s, not %s", p.Name, p.Status.Phase, want)
	}
	if !ended && (p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed) {
		w.world.violate("lost: %s is %s: %s %s", p.Name, p.Status.Phase, p.Status.Reason, p.Status.Message)
	}
}

func (w *workload) behaviourOf(pod, container string) behaviour {
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	return *w.world.behaviour(pod, container)
}

func (w *workload) showStatus(p *v1.Pod, container string) string {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == container {
			return showState(s.State)
		}
	}
	return "no status"
}

// mayBeStuck: an init container fails always, or an image does not exist.
func (w *workload) mayBeStuck(name string, p *v1.Pod) bool {
	for _, c := range containersOf(p) {
		if c.Image == "registry.example/missing" {
			return true
		}
	}
	for _, c := range p.Spec.InitContainers {
		if w.behaviourOf(name, c.Name).code != 0 {
			return true
		}
	}
	return false
}

// checkFiles compares mounted ConfigMaps with the API server's.
func (w *workload) checkFiles(p *v1.Pod) {
	if p.Status.Phase != v1.PodRunning || pod.IsMirror(p) {
		return
	}
	for _, v := range p.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.podDir(p.UID), "volumes", "kubernetes.io~configmap", v.Name, "key"))
		if err != nil {
			w.world.violate("lost: volume %s of %s: %v", v.Name, p.Name, err)
			continue
		}
		for _, c := range fakeapi.List[v1.ConfigMap](w.api) {
			if c.Name == v.ConfigMap.Name && c.Data["key"] != string(text) {
				w.world.violate("status: volume %s of %s has %q, not %q", v.Name, p.Name, text, c.Data["key"])
			}
		}
	}
}

// checkNode checks that the node is ready and has a fresh lease.
func (w *workload) checkNode() {
	nodes := fakeapi.List[v1.Node](w.api)
	if len(nodes) != 1 {
		w.world.violate("node: %d Nodes", len(nodes))
		return
	}
	i := slices.IndexFunc(nodes[0].Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady })
	if i < 0 || nodes[0].Status.Conditions[i].Status != v1.ConditionTrue {
		w.world.violate("node: not ready: %v", nodes[0].Status.Conditions)
	}
	leases := fakeapi.List[coordinationv1.Lease](w.api)
	if len(leases) != 1 || leases[0].Spec.RenewTime == nil || time.Since(leases[0].Spec.RenewTime.Time) > 160*time.Second {
		w.world.violate("node: lease is not fresh: %v", leases)
	}
}

// checkEmpty checks that nothing is left of any pod.
func (w *workload) checkEmpty() {
	for _, s := range w.runtime.Sandboxes() {
		w.world.violate("leak: sandbox of %s", s.Metadata.Name)
	}
	for _, c := range w.runtime.Containers() {
		w.world.violate("leak: container %s of %s", c.Metadata.Name, c.Labels["io.kubernetes.pod.name"])
	}
	for _, p := range fakeapi.List[v1.Pod](w.api) {
		w.world.violate("leak: pod %s in the API server, %s", p.Name, p.Status.Phase)
	}
	for _, uid := range w.kernel.PodCgroups() {
		w.world.violate("leak: cgroup of pod %s", uid)
	}
	for _, m := range w.kernel.MountPoints(w.base) {
		w.world.violate("leak: mount %s", w.shorten(m))
	}
	for _, dir := range []string{filepath.Join(w.root(), "pods"), w.podLogs(), filepath.Join(filepath.Dir(w.podLogs()), "containers")} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			w.world.violate("leak: %s/%s", filepath.Base(dir), e.Name())
		}
	}
}
