package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
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

// churn is how much is made and unmade, and for how long. SWIFTLET_CHURN=5m is the whole
// of it; an ordinary run takes a taste.
type churn struct {
	pods     int           // alive at once, at most
	duration time.Duration // of the making and unmaking
	kills    time.Duration // between two deaths of the agent
}

func ofChurn(t *testing.T) churn {
	t.Helper()
	text := os.Getenv("SWIFTLET_CHURN")
	if text == "" {
		return churn{pods: 30, duration: 30 * time.Second, kills: 8 * time.Second}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return churn{pods: 200, duration: d, kills: 20 * time.Second}
}

// Pods of all kinds come and go at random while the agent is killed over and over. At the
// end nothing of them is left on the node, and none is stuck.
func TestChurn(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("a trial of our own")
	}
	t.Parallel()
	node := ownNode(t, "churned")
	in := namespace(t)
	before, alive := leavings(t, node), canaries(t, node)
	how := ofChurn(t)
	// A seed of its own makes a failure worth repeating.
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %+v", seed, how)

	killed := make(chan struct{})
	ctx, stop := context.WithTimeout(t.Context(), how.duration)
	defer stop()
	go func() {
		defer close(killed)
		keepKilling(t, ctx, node, how.kills)
	}()
	made := makeAndUnmake(t, ctx, in, node.Name(), how.pods, rand.New(rand.NewPCG(seed, 0)))
	<-killed
	t.Logf("%d pods were made", made)

	if err := client().CoreV1().Pods(in).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, in, node, before)
	if missing := alive(); missing != "" {
		t.Error(missing)
	}
}

// nothingLeft waits until neither the API server nor the node has anything of the pods.
func nothingLeft(t *testing.T, in string, node *bed.Box, before map[string][]string) {
	t.Helper()
	eventually(t, 3*time.Minute, func() string { return stillThere(t, in) })
	left := func() string { return itemised(added(before, leavings(t, node))) }
	if waitFor(45*time.Second, left) != "" {
		forgetLost(t, node, added(before, leavings(t, node)))
		eventually(t, 2*time.Minute, left)
	}
}

// precious is a folder of the node that pods mount; below it, one from elsewhere is mounted.
const precious = "/var/lib/precious"

// canaries puts a file into each of the two and says later whether both are as they were:
// the same files, never written to, moved or handed over, and nothing beside them.
func canaries(t *testing.T, node *bed.Box) (alive func() string) {
	t.Helper()
	script := "mkdir -p " + precious + "/mounted /var/lib/elsewhere && mount --bind /var/lib/elsewhere " + precious + "/mounted && " +
		"echo a > " + precious + "/canary && echo b > " + precious + "/mounted/canary"
	if out, err := node.Exec(t.Context(), "sh", "-c", script); err != nil {
		t.Fatalf("put canaries: %v: %s", err, out)
	}
	look := func() string {
		const script = `cd ` + precious + ` && find . -printf '%p inode %i mode %m owner %U:%G written %T@ changed %C@\n' | sort && cat canary mounted/canary`
		out, err := node.Exec(t.Context(), "sh", "-c", script)
		if err != nil {
			return fmt.Sprintf("%s%v", out, err)
		}
		return out
	}
	before := look()
	if !strings.HasSuffix(before, "\na\nb\n") {
		t.Fatalf("the canaries are not well: %s", before)
	}
	return func() string {
		if now := look(); now != before {
			return fmt.Sprintf("the canaries were\n%sand are\n%s", before, now)
		}
		return ""
	}
}

// keepKilling ends the agent without warning, again and again, and leaves it running.
func keepKilling(t *testing.T, ctx context.Context, node *bed.Box, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		if err := node.KillKubelet(); err != nil {
			t.Errorf("kill the agent: %v", err)
			return
		}
		if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}); err != nil {
			t.Errorf("start the agent: %v", err)
			return
		}
	}
}

// makeAndUnmake creates and deletes pods at random, up to a number at once, until ctx ends.
func makeAndUnmake(t *testing.T, ctx context.Context, in, node string, most int, random *rand.Rand) (made int) {
	t.Helper()
	pods := client().CoreV1().Pods(in)
	alive := map[string]bool{}
	for ctx.Err() == nil {
		if len(alive) < most && random.IntN(most) >= len(alive)/2 {
			pod := anyPod(fmt.Sprintf("p%d", made), node, random)
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			alive[pod.Name], made = true, made+1
		} else {
			name := slices.Sorted(maps.Keys(alive))[random.IntN(len(alive))]
			delete(alive, name)
			options := metav1.DeleteOptions{}
			if random.IntN(4) == 0 { // some users have no patience
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

// anyPod is a pod of some kind: one that runs on, ends, crashes, has volumes, an init
// container or a sidecar, or does not heed a request to end.
func anyPod(name, node string, random *rand.Rand) *corev1.Pod {
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
			{Name: "precious", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: precious}}},
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "memory", MountPath: "/memory"}, {Name: "disk", MountPath: "/disk", SubPath: "part"},
			{Name: "precious", MountPath: "/precious"}, {Name: "precious", MountPath: "/part", SubPath: "mounted"}}
	}
	return p
}

// leavings is what pods leave on a node when they are not taken away, by kind.
func leavings(t *testing.T, node *bed.Box) map[string][]string {
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
			t.Fatalf("look for %s: %v", kind, err)
		}
		found[kind] = strings.Fields(out)
	}
	return found
}

// leaving is one thing that is left on a node.
type leaving struct{ kind, name string }

// added says what is there that was not there before. The bridge of the pod network stays
// once it was made.
func added(before, after map[string][]string) []leaving {
	var all []leaving
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		for _, name := range after[kind] {
			if !slices.Contains(before[kind], name) && name != "cni0" {
				all = append(all, leaving{kind, name})
			}
		}
	}
	return all
}

// itemised shows them one by one; "" for none.
func itemised(all []leaving) string {
	var text []string
	for _, l := range all {
		text = append(text, l.kind+": "+l.name)
	}
	return strings.Join(text, "\n")
}

// stillThere names the pods that the API server has.
func stillThere(t *testing.T, in string) string {
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

// eventually asks now and then until nothing is missing.
func eventually(t *testing.T, limit time.Duration, missing func() string) {
	t.Helper()
	if what := waitFor(limit, missing); what != "" {
		t.Fatalf("after %v:\n%s", limit, what)
	}
}

// waitFor asks now and then, and returns what is still missing when the time is over.
func waitFor(limit time.Duration, missing func() string) string {
	for deadline := time.Now().Add(limit); ; time.Sleep(250 * time.Millisecond) {
		if what := missing(); what == "" || time.Now().After(deadline) {
			return what
		}
	}
}
