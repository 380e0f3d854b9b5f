package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/crifaults"
	"swiftlet/test/criproxy"
)

// runtimeFault is a fault of the runtime.
type runtimeFault struct {
	name  string
	fault crifaults.Fault
	// hangs are methods that hang for one pod, in place of fault. Other pods are not affected.
	hangs []string
	short bool // part of the short form
}

// runtimeFaults are the faults of TestRuntimeFaults.
func runtimeFaults() []runtimeFault {
	return []runtimeFault{
		{name: "RunPodSandbox of one pod hangs", hangs: []string{"RunPodSandbox"}},
		{name: "CreateContainer of one pod hangs", hangs: []string{"CreateContainer"}},
		{name: "StartContainer of one pod hangs", hangs: []string{"StartContainer"}, short: true},
		{name: "status of one pod hangs", hangs: []string{"ContainerStatus", "PodSandboxStatus"}},
		{name: "ExecSync of one pod hangs", hangs: []string{"ExecSync"}},
		{name: "StopContainer of one pod hangs", hangs: []string{"StopContainer"}},
		{name: "StopPodSandbox of one pod hangs", hangs: []string{"StopPodSandbox"}},
		{name: "removal of one pod hangs", hangs: []string{"RemoveContainer", "RemovePodSandbox"}},
		{name: "lists hang", fault: crifaults.Hanging(crifaults.Methods("ListPodSandbox", "ListContainers", "ListImages"))},
		{name: "all calls hang", fault: crifaults.Hanging(func(criproxy.Call) bool { return true })},
		{name: "all calls take a second longer", fault: crifaults.Delaying(time.Second)},
		{name: "every third call fails with Unavailable", fault: crifaults.Failing(3, codes.Unavailable)},
		{name: "every third call fails with Unknown", fault: crifaults.Failing(3, codes.Unknown)},
		{name: "all calls fail", fault: crifaults.Failing(1, codes.Internal)},
		{name: "every third answer is lost", fault: crifaults.LosingAnswers(3)},
		{name: "every third answer is cut in half", fault: crifaults.Truncating(3)},
		{name: "entries of lists are repeated", fault: crifaults.Duplicating()},
		{name: "fields are missing", fault: crifaults.OmittingFields()},
		{name: "times are an hour ahead", fault: crifaults.ShiftingTimes(time.Hour)},
		{name: "times are an hour late", fault: crifaults.ShiftingTimes(-time.Hour)},
		{name: "times are the largest number", fault: crifaults.ExtremeTimes()},
		{name: "lists of 100 MB", fault: crifaults.GrowingLists(100 << 20), short: true},
		{name: "events stall", fault: crifaults.StallingEvents()},
		{name: "events are lost and their stream is cut", fault: crifaults.DroppingEvents()},
		{name: "events are repeated", fault: crifaults.ReplayingEvents(), short: true},
		{name: "events of nothing", fault: crifaults.SpoilingEvents()},
	}
}

const (
	faultySocket = "/etc/containerd/faulty.sock" // in a directory that the host can reach
	// faultyCalls bounds the calls of an agent that meets a fault: at once, and per second.
	faultyCalls, faultyCallRate = 100, 50
	// maxFaultyRSS bounds the agent's memory, in KiB.
	maxFaultyRSS = 256 << 10
)

// TestRuntimeFaults injects faults between the agent and containerd. The agent and the pods keep running, and
// within 30 s after each fault everything is as it should be. A call that hangs affects only its own pod: the
// node stays ready, and the sync of another pod begins within 2 s. SWIFTLET_RUNTIME_FAULTS=all runs all
// faults, each for 20 s or for the duration that is given instead; SWIFTLET_RUNTIME_ONLY only those whose name
// contains it.
func TestRuntimeFaults(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("tests only our kubelet")
	}
	t.Parallel()
	lasts, all := faultDuration(t, "SWIFTLET_RUNTIME_FAULTS")
	f := newFaultyRuntime(t, all)
	for _, fault := range runtimeFaults() {
		if (fault.short || all) && strings.Contains(fault.name, os.Getenv("SWIFTLET_RUNTIME_ONLY")) {
			t.Run(fault.name, func(t *testing.T) {
				survived := f.inject(t, fault, lasts)
				f.counted.Fault(survived && !t.Failed())
			})
		}
	}
	f.countLost(t)
	if peak := peakRSS(t, f.node); peak > maxFaultyRSS {
		t.Errorf("the agent used %d KiB of memory, want at most %d", peak, maxFaultyRSS)
	}
}

// faultyRuntime is a node that reaches containerd through a proxy that injects faults.
type faultyRuntime struct {
	*faultyNode
	proxy *crifaults.Proxy
	// syncLimit is how long the sync of a pod may take to begin while a call of another one hangs. The
	// short form shares the machine with other tests.
	syncLimit time.Duration
}

func newFaultyRuntime(t *testing.T, alone bool) *faultyRuntime {
	t.Helper()
	f := &faultyRuntime{faultyNode: newFaultyNode(t, "lying", "runtime"), syncLimit: 10 * time.Second}
	if alone {
		f.syncLimit = 2 * time.Second
	}
	var err error
	if f.proxy, err = crifaults.Start(f.node.Path(faultySocket), f.node.RuntimeSocket()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	f.start(t, "containerRuntimeEndpoint: unix://"+faultySocket)
	return f
}

// inject injects one fault. Meanwhile a pod changes its readiness, and another is created.
func (f *faultyRuntime) inject(t *testing.T, fault runtimeFault, lasts time.Duration) (survived bool) {
	t.Helper()
	f.proxy.Calls()
	hung := fmt.Sprintf("hung-%d", f.injected)
	hangs := func() bool { return false }
	if fault.hangs != nil {
		fault.fault, hangs = crifaults.HangingPod(hung, fault.hangs...)
	}
	f.proxy.Set(fault.fault)
	began := time.Now()
	if fault.hangs != nil {
		f.createHung(t, hung, fault.hangs[0])
		eventually(t, timeout, func() string {
			if !hangs() {
				return "no call hangs"
			}
			return ""
		})
	}
	synced := f.awaitSync()
	late := f.disturb(t)
	if fault.hangs != nil {
		f.checkOthers(t, late, synced)
	}
	time.Sleep(time.Until(began.Add(lasts)))
	calls, lasted := f.proxy.Calls(), time.Since(began)
	f.proxy.Set(crifaults.Fault{})
	ended := time.Now()
	missing := waitFor(timeout, func() string { return f.missing(t, late) + f.unfinished(t, hung) })
	total := 0
	for _, n := range calls {
		total += n
	}
	t.Logf("%d calls in %v of %s: %v; converged after %v", total, lasted.Round(time.Second), fault.name, calls, time.Since(ended).Round(10*time.Millisecond))
	if missing != "" {
		t.Errorf("%v after %s:\n%s", timeout, fault.name, missing)
	}
	if most := faultyCalls + int(faultyCallRate*lasted.Seconds()); total > most {
		t.Errorf("%d calls in %v of %s, want at most %d: %v", total, lasted, fault.name, most, calls)
	}
	return missing == ""
}

// createHung creates the pod whose calls hang. If one that stops it hangs, it also deletes the pod.
func (f *faultyRuntime) createHung(t *testing.T, name, method string) {
	t.Helper()
	pod := sleeper(name, f.node.Name())
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	create(t, f.space, pod)
	if strings.HasPrefix(method, "Stop") || strings.HasPrefix(method, "Remove") {
		awaitPod(t, f.space, name, timeout, ready)
		if err := client().CoreV1().Pods(f.space).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitSync returns a function that returns when the next sandbox was requested, zero if none was.
func (f *faultyRuntime) awaitSync() func() time.Time {
	var first atomic.Pointer[time.Time]
	f.proxy.OnCall(func(c criproxy.Call) {
		if c.Method() == "RunPodSandbox" {
			first.CompareAndSwap(nil, &c.Began)
		}
	})
	return func() time.Time {
		f.proxy.OnCall(nil)
		if at := first.Load(); at != nil {
			return *at
		}
		return time.Time{}
	}
}

// checkOthers checks that while calls of a pod hang, the node is ready and another pod starts.
func (f *faultyRuntime) checkOthers(t *testing.T, late string, synced func() time.Time) {
	t.Helper()
	pod := awaitPod(t, f.space, late, timeout, ready)
	if took := synced().Sub(pod.CreationTimestamp.Time); took > f.syncLimit+time.Second { // the timestamp has no fraction
		t.Errorf("the sync of another pod began after %v, want at most %v", took, f.syncLimit)
	}
	node, err := client().CoreV1().Nodes().Get(t.Context(), f.node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if why := nodeReady(corev1.ConditionTrue)(node); why != "" {
		t.Errorf("while a call hangs: %s", why)
	}
}

// unfinished lists what is missing of the pod whose calls have hung: it is ready, or gone if it was deleted.
func (f *faultyRuntime) unfinished(t *testing.T, name string) string {
	t.Helper()
	list, err := client().CoreV1().Pods(f.space).List(t.Context(), byName(name))
	switch {
	case err != nil:
		return err.Error()
	case len(list.Items) == 0:
		return ""
	case list.Items[0].DeletionTimestamp != nil:
		return name + " is not deleted"
	}
	if why := ready(&list.Items[0]); why != "" {
		return name + ": " + why
	}
	return ""
}
