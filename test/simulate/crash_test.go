package simulate

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/fakeapi"
	"swiftlet/test/trust/tally"
)

// crash kills the agent at one of its calls to the runtime, the API server or the kernel.
type crash struct {
	mu       sync.Mutex
	counting bool
	calls    []string // since counting began
	at       int      // the call to crash at, from 1; 0: none
	executed bool     // the call is executed, and only its response is lost
}

// reached counts a call, and reports whether it is the one to crash at.
func (c *crash) reached(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.counting {
		return false
	}
	c.calls = append(c.calls, name)
	return len(c.calls) == c.at
}

// executes reports whether the call is executed at which the agent was killed.
func (c *crash) executes(r *rand.Rand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at > 0 {
		return c.executed
	}
	return often(r, 0.5)
}

func (c *crash) count(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counting = on
}

const (
	// crashWindow is the part of a case in which the agent is killed. It has the check of manifests, the
	// first back-off of a crashed container, and the check of volumes' sizes.
	crashWindow = 30 * time.Second
	crashSettle = 4 * time.Minute
)

// crashCase is a part of a pod's life.
type crashCase struct {
	name    string
	setup   func(w *workload)
	trigger func(w *workload)
}

var crashCases = []crashCase{
	{"start", nil, (*workload).addCrashPod},
	{"start of a job", nil, func(w *workload) { w.addJob() }},
	{"deletion", (*workload).addCrashPod, func(w *workload) { w.deleteWith("web", 5) }},
	{"deletion without grace", (*workload).addCrashPod, func(w *workload) { w.deleteWith("web", 0) }},
	{"forced deletion", (*workload).addCrashPod, func(w *workload) { fakeapi.Remove[v1.Pod](w.api, v1.NamespaceDefault, "web") }},
	{"container restart", (*workload).addCrashPod, func(w *workload) { w.exitMain(1) }},
	{"sandbox replacement", (*workload).addCrashPod, (*workload).killSandbox},
	{"image change", (*workload).addCrashPod, (*workload).changeImage},
	{"resize", (*workload).addCrashPod, (*workload).resize},
	{"configuration change", (*workload).addCrashPod, func(w *workload) { w.changeObject(); w.changeObject() }},
	{"eviction", (*workload).addCrashPod, (*workload).overfill},
	{"liveness failure", (*workload).addCrashPod, (*workload).failLiveness},
	{"static pod", nil, (*workload).addStatic},
	{"static pod change", (*workload).addStatic, (*workload).addStatic},
	{"static pod removal", (*workload).addStatic, func(w *workload) { w.removeManifest("static") }},
}

// TestCrashMatrix kills the agent at every call of a pod's life, before and after the call was executed. A
// call that is added to the agent joins by itself: the calls are those of a run without a crash. It runs a
// part of the matrix, another one every day, unless SWIFTLET_CRASH is "all".
func TestCrashMatrix(t *testing.T) {
	if *seedFlag >= 0 {
		t.Skip("one seed was asked for")
	}
	stride, offset := 40, 0
	if testing.Short() {
		stride = 200 // with the race detector
	}
	if os.Getenv("SWIFTLET_CRASH") == "all" {
		stride = 1
	} else {
		offset = time.Now().YearDay()
		t.Logf("part %d of %d; SWIFTLET_CRASH=all runs all", offset%stride, stride)
	}
	counts := tally.New(t, "crash")
	t.Run("cases", func(t *testing.T) {
		for _, c := range crashCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				calls := runCrash(t, c, 0, false, func(outcomeOf) {})
				if len(calls) < 10 {
					t.Fatalf("there were only %d calls", len(calls))
				}
				for _, executed := range []bool{false, true} {
					for at := 1; at <= len(calls); at++ {
						if (at+offset+spread(c.name, executed))%stride != 0 {
							continue
						}
						t.Run(fmt.Sprintf("%d %s executed %v", at, calls[at-1], executed), func(t *testing.T) {
							runCrash(t, c, at, executed, func(o outcomeOf) { o.faults = 1; o.count(counts) })
						})
					}
				}
			})
		}
	})
}

// spread makes the part of the matrix differ between cases.
func spread(name string, executed bool) int {
	h := fnv.New32a()
	_, _ = h.Write(fmt.Appendf(nil, "%s %v", name, executed))
	return int(h.Sum32() % 1000)
}

// runCrash runs a case with a crash at one call, and returns the calls.
func runCrash(t *testing.T, c crashCase, at int, executed bool, record func(outcomeOf)) (calls []string) {
	base, err := os.MkdirTemp(memoryDir(), "simulate")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, 1, base)
		n.profile = profile{longestDowntime: time.Second}
		n.endFaults()
		w := newWorkload(n)
		n.start()
		if c.setup != nil {
			c.setup(w)
		}
		time.Sleep(time.Minute)
		n.crash.at, n.crash.executed = at, executed
		n.crash.count(true)
		c.trigger(w)
		time.Sleep(crashWindow)
		n.crash.count(false)
		time.Sleep(crashSettle)
		synctest.Wait()
		w.checkSettled()
		w.clear()
		time.Sleep(crashSettle)
		synctest.Wait()
		w.checkEmpty()
		n.stop()
		calls = n.crash.calls
		record(outcomeOf{violations: n.world.violations})
		for _, v := range n.world.violations {
			t.Error(v)
		}
		if len(n.world.violations) > 0 {
			t.Logf("trace:\n%s", n.last(400))
		}
	})
	return calls
}

// crashPod is a pod with most of what a pod can have.
func crashPod(name string) *v1.Pod {
	hook := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hook"}}}
	probe := &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"probe"}}}, PeriodSeconds: 10, FailureThreshold: 1}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(2)), RestartPolicy: v1.RestartPolicyAlways,
			InitContainers: []v1.Container{
				{Name: "init", Image: "app:1"},
				{Name: "sidecar", Image: "app:1", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)},
			},
			Containers: []v1.Container{{
				Name: "main", Image: "app:1", ReadinessProbe: probe, LivenessProbe: probe.DeepCopy(),
				Lifecycle: &v1.Lifecycle{PostStart: hook, PreStop: hook},
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("15m"), v1.ResourceMemory: resource.MustParse("8Mi")}},
			}},
		},
	}
}

func (w *workload) addCrashPod() {
	p := crashPod("web")
	p.Spec.ServiceAccountName = "default"
	p.Spec.Volumes = []v1.Volume{
		{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("4Ki"))}}},
		{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config0"}}}},
		{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "secret0"}}},
		{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(3600))}},
		}}}},
	}
	for _, v := range p.Spec.Volumes {
		mount := v1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name}
		if v.Name == "empty" {
			mount.SubPath = "part"
		}
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, mount)
	}
	w.world.change("web", "init", func(b *behaviour) { *b = behaviour{exits: -1} })
	w.store(p)
}

// addJob adds a pod that ends.
func (w *workload) addJob() {
	p := crashPod("job")
	p.Spec.RestartPolicy = v1.RestartPolicyNever
	w.world.change("job", "init", func(b *behaviour) { *b = behaviour{exits: -1, after: time.Second} })
	w.world.change("job", "main", func(b *behaviour) { *b = behaviour{exits: -1, after: 5 * time.Second} })
	w.store(p)
}

func (w *workload) exitMain(code int32) {
	for _, c := range w.runtime.Containers() {
		if c.Metadata.Name == "main" {
			w.world.exit(c.Id, code)
		}
	}
}

// failLiveness makes the next check of the liveness probe fail.
func (w *workload) failLiveness() {
	for _, p := range fakeapi.List[v1.Pod](w.api) {
		for _, c := range containersOf(p) {
			w.world.cause(key{string(p.UID), c.Name}, 10)
		}
	}
	w.world.change("web", "main", func(b *behaviour) { b.sick = true })
	time.AfterFunc(12*time.Second, func() { w.world.change("web", "main", func(b *behaviour) { b.sick = false }) })
}

// addStatic adds or replaces a static pod.
func (w *workload) addStatic() {
	w.world.change("static", "init", func(b *behaviour) { *b = behaviour{exits: -1} })
	w.writeManifest(crashPod("static"))
}
