package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// churn is the size of the test. SWIFTLET_CHURN=5m is the full size; the default is smaller.
type churn struct {
	pods     int           // maximum number at a time
	duration time.Duration // of creating and deleting
	kills    time.Duration // time between two kills of the agent
}

func churnSize(t *testing.T) churn {
	t.Helper()
	lasts := durationFrom(t, "SWIFTLET_CHURN", 0)
	if lasts == 0 {
		return churn{pods: 30, duration: 30 * time.Second, kills: 8 * time.Second}
	}
	return churn{pods: 200, duration: lasts, kills: 20 * time.Second}
}

// TestChurn creates and deletes pods of all kinds at random while the agent is killed repeatedly. At
// the end no pod is stuck, and nothing of them is left on the node.
func TestChurn(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("tests only our kubelet")
	}
	t.Parallel()
	node := ownNode(t, "churned")
	in := namespace(t)
	before, hostFilesChanged := podResources(t, node), watchHostFiles(t, node)
	size := churnSize(t)
	// The seed is logged, so that a failure can be repeated.
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %+v", seed, size)

	killed := make(chan struct{})
	ctx, stop := context.WithTimeout(t.Context(), size.duration)
	defer stop()
	go func() {
		defer close(killed)
		killRepeatedly(t, ctx, node, size.kills)
	}()
	made := createAndDelete(t, ctx, in, node.Name(), size.pods, rand.New(rand.NewPCG(seed, 0)))
	<-killed
	t.Logf("created %d pods", made)

	if err := client().CoreV1().Pods(in).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNothingLeft(t, in, node, before)
	if missing := hostFilesChanged(); missing != "" {
		t.Error(missing)
	}
}

// awaitNothingLeft waits until nothing of the pods is left in the API server and on the node.
func awaitNothingLeft(t *testing.T, in string, node *bed.Box, before map[string][]string) {
	t.Helper()
	eventually(t, 3*time.Minute, func() string { return listPods(t, in) })
	left := func() string { return formatResources(newResources(before, podResources(t, node))) }
	if waitFor(45*time.Second, left) != "" {
		restartIfContainersLost(t, node, newResources(before, podResources(t, node)))
		eventually(t, 2*time.Minute, left)
	}
}

// hostDir is a directory of the node that pods mount. Another directory is mounted below it.
const hostDir = "/var/lib/precious"

// watchHostFiles creates a file in each of the two directories. The returned function checks that nothing
// there has changed: content, inode, mode, owner, times and the list of files.
func watchHostFiles(t *testing.T, node *bed.Box) (hostFilesChanged func() string) {
	t.Helper()
	script := "mkdir -p " + hostDir + "/mounted /var/lib/elsewhere && mount --bind /var/lib/elsewhere " + hostDir + "/mounted && " +
		"echo a > " + hostDir + "/canary && echo b > " + hostDir + "/mounted/canary"
	if out, err := node.Exec(t.Context(), "sh", "-c", script); err != nil {
		t.Fatalf("create host files: %v: %s", err, out)
	}
	look := func() string {
		const script = `cd ` + hostDir + ` && find . -printf '%p inode %i mode %m owner %U:%G written %T@ changed %C@\n' | sort && cat canary mounted/canary`
		out, err := node.Exec(t.Context(), "sh", "-c", script)
		if err != nil {
			return fmt.Sprintf("%s%v", out, err)
		}
		return out
	}
	before := look()
	if !strings.HasSuffix(before, "\na\nb\n") {
		t.Fatalf("host files: %s", before)
	}
	return func() string {
		if now := look(); now != before {
			return fmt.Sprintf("host files changed from\n%sto\n%s", before, now)
		}
		return ""
	}
}

// killRepeatedly kills and restarts the agent repeatedly, and leaves it running.
func killRepeatedly(t *testing.T, ctx context.Context, node *bed.Box, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if err := node.KillKubelet(); err != nil {
			t.Errorf("kill agent: %v", err)
			return
		}
		if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
			t.Errorf("start agent: %v", err)
			return
		}
	}
}

// createAndDelete creates and deletes pods at random, up to a number at a time, until ctx is done.
func createAndDelete(t *testing.T, ctx context.Context, in, node string, most int, random *rand.Rand) (made int) {
	t.Helper()
	pods := client().CoreV1().Pods(in)
	hostFilesChanged := map[string]bool{}
	for ctx.Err() == nil {
		if len(hostFilesChanged) < most && random.IntN(most) >= len(hostFilesChanged)/2 {
			pod := randomPod(fmt.Sprintf("p%d", made), node, random)
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			hostFilesChanged[pod.Name], made = true, made+1
		} else {
			name := slices.Sorted(maps.Keys(hostFilesChanged))[random.IntN(len(hostFilesChanged))]
			delete(hostFilesChanged, name)
			options := metav1.DeleteOptions{}
			if random.IntN(4) == 0 { // force-delete some
				options.GracePeriodSeconds = ptr.To[int64](0)
			}
			if err := pods.Delete(t.Context(), name, options); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(random.IntN(200)) * time.Millisecond):
		}
	}
	return made
}

// randomPod returns a pod of a random kind: one that keeps running, completes, crashes, has volumes, an
// init container or a sidecar, or ignores SIGTERM.
func randomPod(name, node string, random *rand.Rand) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(random.IntN(4)))
	c := &p.Spec.Containers[0]
	switch random.IntN(6) {
	case 0:
		p.Spec.RestartPolicy, c.Command = corev1.RestartPolicyNever, []string{"true"}
	case 1:
		c.Command = []string{"sh", "-c", "exit 3"}
	case 2:
		c.Command = []string{"sleep", "3600"}
	case 3:
		p.Spec.InitContainers = []corev1.Container{
			{Name: "init", Image: images.Busybox, Command: []string{"sleep", "1"}},
			{Name: "side", Image: images.Busybox, Command: c.Command, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}
	case 4:
		p.Spec.Volumes = []corev1.Volume{
			{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "precious", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: hostDir}}},
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}, {Name: "disk", MountPath: "/disk", SubPath: "part"},
			{Name: "precious", MountPath: "/precious"}, {Name: "precious", MountPath: "/part", SubPath: "mounted"}}
	}
	return p
}

// podResources lists everything on a node that belongs to pods, by kind.
func podResources(t *testing.T, node *bed.Box) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for kind, command := range map[string]string{
		"containers": "ctr -n k8s.io containers ls -q",
		"tasks":      "ctr -n k8s.io tasks ls -q",
		"cgroups":    "find /sys/fs/cgroup -type d -name 'pod*'",
		"mounts":     "cut -d' ' -f5 /proc/self/mountinfo | grep -E '/var/lib/kubelet/|/run/containerd/|/run/netns/' || true",
		"folders":    "ls /var/lib/kubelet/pods 2>/dev/null || true",
		"logs":       "ls /var/log/pods /var/log/containers",
		"netns":      "ls /run/netns 2>/dev/null || true",
		"links":      "ls /sys/class/net",
	} {
		out, err := node.Exec(t.Context(), "sh", "-c", command)
		if err != nil {
			t.Fatalf("list %s: %v", kind, err)
		}
		found[kind] = strings.Fields(out)
	}
	return found
}

// podResource is one resource on a node.
type podResource struct{ kind, name string }

// newResources returns the resources in after that are not in before, except for the bridge of the pod
// network, which is never removed.
func newResources(before, after map[string][]string) []podResource {
	var all []podResource
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		for _, name := range after[kind] {
			if !slices.Contains(before[kind], name) && name != "cni0" {
				all = append(all, podResource{kind, name})
			}
		}
	}
	return all
}

// formatResources lists them, one per line.
func formatResources(all []podResource) string {
	var text []string
	for _, l := range all {
		text = append(text, l.kind+": "+l.name)
	}
	return strings.Join(text, "\n")
}

// listPods lists the pods in the API server.
func listPods(t *testing.T, in string) string {
	t.Helper()
	list, err := client().CoreV1().Pods(in).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, fmt.Sprintf("%s (%s)", p.Name, p.Status.Phase))
	}
	return strings.Join(names, ", ")
}

// eventually polls until missing returns "". After the limit, the test fails with its last result.
func eventually(t *testing.T, limit time.Duration, missing func() string) {
	t.Helper()
	if what := waitFor(limit, missing); what != "" {
		t.Fatalf("after %v:\n%s", limit, what)
	}
}

// waitFor polls until missing returns "" or the limit is over, and returns its last result.
func waitFor(limit time.Duration, missing func() string) string {
	for deadline := time.Now().Add(limit); ; time.Sleep(250 * time.Millisecond) {
		if what := missing(); what == "" || time.Now().After(deadline) {
			return what
		}
	}
}
