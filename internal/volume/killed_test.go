package volume

import (
	"bytes"
	"context"
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

// workerEnv is the root directory of a process that mounts and unmounts until it is killed.
const workerEnv = "SWIFTLET_TEST_VOLUME_WORKER"

// cycles is how many pods are mounted and unmounted, including those that kills interrupt.
func cycles() int {
	if testing.Short() {
		return 40
	}
	return 1000
}

// TestKilledAtAnyLine kills an agent repeatedly while it mounts and unmounts pods with all kinds of
// volumes. The last agent removes all that the others left, and no other file.
func TestKilledAtAnyLine(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		t.Skip("this process is the worker")
	}
	root, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	canaryDir, alive := canary(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for count(t, done) < cycles() {
		worker := exec.Command("/proc/self/exe", "-test.run=^TestWorkerProcess$", "-test.timeout=1m")
		worker.Env = append(os.Environ(), workerEnv+"="+root, workerEnv+"_DONE="+done, workerEnv+"_CANARY="+canaryDir)
		var out bytes.Buffer
		worker.Stdout, worker.Stderr = &out, &out
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		before := count(t, done)
		poll.Until(t, "the worker to start", func() bool { return count(t, done) > before || worker.ProcessState != nil })
		time.Sleep(time.Duration(random.IntN(200_000)) * time.Microsecond) // a random moment
		_ = worker.Process.Kill()
		if err := worker.Wait(); err == nil || worker.ProcessState.Exited() {
			t.Fatalf("the worker exited: %v\n%s", err, out.String())
		}
		kills++
		if !alive() {
			t.Fatalf("after %d kills (seed %d): the canary file was removed", kills, seed)
		}
	}
	t.Logf("seed %d: %d pods, %d kills", seed, count(t, done), kills)
	cleanUp(t, root)
	if !alive() {
		t.Error("the canary file was removed")
	}
}

// cleanUp is what a new agent does with pods that do not exist.
func cleanUp(t *testing.T, root string) {
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

// TestWorkerProcess is the process that TestKilledAtAnyLine kills.
func TestWorkerProcess(t *testing.T) {
	root := os.Getenv(workerEnv)
	if root == "" {
		t.Skip("run by TestKilledAtAnyLine")
	}
	done, err := os.OpenFile(os.Getenv(workerEnv+"_DONE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	n := newNodeAt(t, root)
	sources := []v1.VolumeSource{
		{HostPath: &v1.HostPathVolumeSource{Path: os.Getenv(workerEnv + "_CANARY")}},
		n.claimed(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: os.Getenv(workerEnv + "_CANARY")}}),
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
		p.Spec.Containers[0].VolumeMounts[2].SubPath = "sub/path"
		n.cycle(p)
		if _, err := done.WriteString("."); err != nil {
			t.Fatal(err)
		}
	}
}

// cycle mounts and unmounts a pod, and unmounts one that an earlier agent left.
func (n *node) cycle(p *v1.Pod) {
	n.t.Helper()
	n.objects.Register(p)
	mounted, err := n.Mount(n.t.Context(), p)
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.ContainerMounts(context.Background(), p, &p.Spec.Containers[0], mounted, MountOptions{}); err != nil {
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
