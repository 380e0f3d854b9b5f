package volume

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/test/poll"
)

// victimEnv names the directory in which a process mounts and unmounts until it is killed.
const victimEnv = "SWIFTLET_TEST_VOLUME_VICTIM"

// cycles is how many pods come and go; each kill costs some of them.
func cycles() int {
	if testing.Short() {
		return 40
	}
	return 1000
}

// TestKilledAtAnyLine kills an agent without warning, again and again, while pods with all
// kinds of volumes come and go. The last agent takes away all that the others left, and
// nothing that is not ours was touched.
func TestKilledAtAnyLine(t *testing.T) {
	if os.Getenv(victimEnv) != "" {
		t.Skip("this process is the victim")
	}
	root, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	precious, alive := canary(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for count(t, done) < cycles() {
		victim := exec.Command("/proc/self/exe", "-test.run=^TestVictim$", "-test.timeout=1m")
		victim.Env = append(os.Environ(), victimEnv+"="+root, victimEnv+"_DONE="+done, victimEnv+"_PRECIOUS="+precious)
		var out bytes.Buffer
		victim.Stdout, victim.Stderr = &out, &out
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		before := count(t, done)
		poll.Until(t, "the victim to be at work", func() bool { return count(t, done) > before || victim.ProcessState != nil })
		time.Sleep(time.Duration(random.IntN(200_000)) * time.Microsecond) // the moment is the point
		_ = victim.Process.Kill()
		if err := victim.Wait(); err == nil || victim.ProcessState.Exited() {
			t.Fatalf("the victim ended by itself: %v\n%s", err, out.String())
		}
		kills++
		if !alive() {
			t.Fatalf("after %d kills (seed %d): the canary is dead", kills, seed)
		}
	}
	t.Logf("seed %d: %d pods, %d kills", seed, count(t, done), kills)
	takeOver(t, root)
	if !alive() {
		t.Error("the canary is dead")
	}
}

// takeOver is what a new agent does with pods that nobody wants.
func takeOver(t *testing.T, root string) {
	n := newNodeAt(t, root)
	uids, err := n.PodDirs()
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range uids {
		n.unmount(uid)
		if err := n.RemovePodDir(uid); err != nil {
			t.Error(err)
		}
	}
	if err := n.UnstageOrphans(); err != nil {
		t.Error(err)
	}
	if points, err := n.deps.Mounter.MountPoints(root); err != nil || len(points) != 0 {
		t.Errorf("left mounted: %v, %v", points, err)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "pods")); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func count(t *testing.T, file string) int {
	t.Helper()
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// TestVictim is the process that TestKilledAtAnyLine kills.
func TestVictim(t *testing.T) {
	root := os.Getenv(victimEnv)
	if root == "" {
		t.Skip("only as a victim")
	}
	done, err := os.OpenFile(os.Getenv(victimEnv+"_DONE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	n := newNodeAt(t, root)
	sources := []v1.VolumeSource{
		{HostPath: &v1.HostPathVolumeSource{Path: os.Getenv(victimEnv + "_PRECIOUS")}},
		n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: os.Getenv(victimEnv + "_PRECIOUS")}}),
	}
	for _, k := range kinds {
		sources = append(sources, k.source)
	}
	for i := 0; ; i++ {
		p := n.podNamed(fmt.Sprintf("pod-%d-%d", os.Getpid(), i), sources[0])
		p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil
		for j, source := range sources {
			name := fmt.Sprint("v", j)
			p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: source})
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
		}
		p.Spec.Containers[0].VolumeMounts[2].SubPath = "part/of/it"
		n.cycle(p)
		if _, err := done.WriteString("."); err != nil {
			t.Fatal(err)
		}
	}
}

// cycle is the life of a pod's volumes, after that of one that an earlier agent left.
func (n *node) cycle(p *v1.Pod) {
	n.t.Helper()
	n.objects.Register(p)
	mounted, err := n.Mount(n.t.Context(), p)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.ContainerMounts(p, &p.Spec.Containers[0], mounted, MountOptions{}); err != nil {
		n.t.Fatal(err)
	}
	gone := []types.UID{p.UID}
	if old, err := n.PodDirs(); err == nil && len(old) > 0 {
		gone = append(gone, old[0])
	}
	for _, uid := range gone {
		n.unmount(uid)
		if err := n.RemovePodDir(uid); err != nil {
			n.t.Fatal(err)
		}
	}
	n.objects.Unregister(p)
}
