package why

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"swiftlet/internal/pod"
)

func TestClassFollowsFromType(t *testing.T) {
	missing := apierrors.NewNotFound(v1.Resource("secrets"), "key")
	for name, c := range map[string]struct {
		err    error
		class  Class
		object string
	}{
		"nil":                   {nil, Unclassified, ""},
		"text only":             {errors.New("secrets \"key\" not found"), Unclassified, ""},
		"given class":           {fmt.Errorf("mount: %w", Because(ClaimNotBound, "PersistentVolumeClaim c", errors.New("x"))), ClaimNotBound, "PersistentVolumeClaim c"},
		"class of the cause":    {Because(Unclassified, "", missing), ObjectNotFound, "Secret key"},
		"aggregate":             {utilerrors.NewAggregate([]error{missing, errors.New("x")}), ObjectNotFound, "Secret key"},
		"API object missing":    {fmt.Errorf("read: %w", missing), ObjectNotFound, "Secret key"},
		"API forbidden":         {apierrors.NewForbidden(v1.Resource("configmaps"), "c", nil), ObjectForbidden, "ConfigMap c"},
		"API server overloaded": {apierrors.NewTooManyRequests("later", 1), APIServerUnreachable, ""},
		"API server cut off":    {&url.Error{Op: "Get", URL: "https://x", Err: io.EOF}, APIServerUnreachable, ""},
		"API server down":       {&url.Error{Op: "Get", URL: "https://x", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, APIServerUnreachable, ""},
		"runtime down":          {fmt.Errorf("run: %w", status.Error(codes.Unavailable, "x")), RuntimeUnavailable, ""},
		"call timed out":        {status.Error(codes.DeadlineExceeded, "x"), Timeout, ""},
		"deadline":              {fmt.Errorf("mount: %w", context.DeadlineExceeded), Timeout, ""},
		"busy":                  {fmt.Errorf("unmount: %w", syscall.EBUSY), DeviceBusy, ""},
		"full":                  {syscall.EDQUOT, NoSpace, ""},
		"program missing":       {fmt.Errorf("mount: %w", &exec.Error{Name: "mount.nfs", Err: exec.ErrNotFound}), ProgramMissing, "mount.nfs"},
		"device awaited":        {&pod.WaitError{}, WaitsForDevice, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if class, object := Of(c.err); class != c.class || object != c.object {
				t.Errorf("%q of %q, want %q of %q", class, object, c.class, c.object)
			}
		})
	}
}

func TestEveryStepHasItsWords(t *testing.T) {
	for k := range Kind(len(kindNames)) {
		in := &input{pod: newPod("app"), status: &v1.PodStatus{}, now: noon}
		for _, state := range []string{failed, running} {
			if isProbe(k) && state == running {
				continue
			}
			s := StepReport{Step: Step{Kind: k, Name: "app"}, State: state, Began: noon}
			if cause := in.ofStep(&s); cause.What == "" || cause.Fix == "" || cause.Where == "" || strings.Contains(cause.Sentence(noon), "{") {
				t.Errorf("%s, %s: %+v", k, state, cause)
			}
		}
		text, err := k.MarshalText()
		var back Kind
		if err != nil || back.UnmarshalText(text) != nil || back != k {
			t.Errorf("%s is read back as %s", k, back)
		}
	}
}

// reportOf is the report about a running pod with this status.
func reportOf(t *testing.T, p *v1.Pod, s v1.PodStatus) Report {
	t.Helper()
	b := New()
	b.Track(p, Starting, nil, noon)
	r, _ := b.Report(p.UID, &s, at(60))
	return r
}

func TestOOMKill(t *testing.T) {
	oom := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(at(5))}}
	waiting := v1.ContainerStatus{Name: "app", RestartCount: 2, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: oom}
	const want = "container app: was killed because it used more memory than its limit (OOMKilled), since 12:00:05, 3 times tried; fix spec.containers[0].resources.limits.memory"
	if got := reportOf(t, newPod("app"), v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting}}).Sentence; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestSilentProbe: a probe whose command prints nothing is why its container was stopped.
func TestSilentProbe(t *testing.T) {
	b := New()
	b.Track(newPod("app"), Starting, nil, noon)
	b.End("u1", Step{Liveness, "app"}, Because(ProbeFailed, "", errors.New("")), noon, time.Time{})
	stopped := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at(5))}}
	waiting := v1.ContainerStatus{Name: "app", RestartCount: 1, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}, LastTerminationState: stopped}
	const want = "container app: was stopped: its liveness probe failed, since 12:00:05, 2 times tried; fix spec.containers[0].livenessProbe, or what it asks"
	if r, _ := b.Report("u1", &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting}}, at(60)); r.Sentence != want {
		t.Errorf("%s\nwant %s", r.Sentence, want)
	}
}

// TestFailureComesBeforeWait: a volume that has not come back may yet, a sandbox that failed has not.
func TestFailureComesBeforeWait(t *testing.T) {
	b := New()
	b.Track(newPod("app"), Starting, nil, noon)
	b.Begin("u1", Step{Volume, "data"}, noon)
	b.End("u1", Step{Image, "app"}, Because(ImageNotFound, "", errors.New("x")), noon, at(5))
	if r, _ := b.Report("u1", nil, at(1)); r.Cause.Class != ImageNotFound {
		t.Errorf("%s", r.Sentence)
	}
	b.End("u1", Step{Kind: Sandbox}, Because(SandboxFailed, "", errors.New("x")), noon, at(5))
	if r, _ := b.Report("u1", nil, at(1)); r.Cause.Class != SandboxFailed {
		t.Errorf("%s", r.Sentence)
	}
}

func TestTimesOfOtherDaysHaveTheirDate(t *testing.T) {
	c := Cause{Where: "pod", What: "is ready", Since: noon.Add(-24 * time.Hour)}
	if got, want := c.Sentence(noon), "pod: is ready, since 2026-02-28 12:00:00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTree(t *testing.T) {
	b := New()
	b.Track(newPod("app"), Starting, nil, noon)
	b.Begin("u1", Step{Kind: Sandbox}, noon)
	b.End("u1", Step{Kind: Sandbox}, nil, noon.Add(80*time.Millisecond), time.Time{})
	b.Begin("u1", Step{Image, "app"}, noon)
	b.End("u1", Step{Image, "app"}, errors.New("first\ntry"), at(1), at(10))
	b.Begin("u1", Step{Image, "app"}, at(10))
	b.End("u1", Step{Image, "app"}, nil, at(12), time.Time{})
	b.Bytes("u1", Step{Image, "app"}, 3_500_000)
	b.Begin("u1", Step{Start, "app"}, at(13))
	r, _ := b.Report("u1", &v1.PodStatus{Phase: v1.PodPending}, at(20))
	var text bytes.Buffer
	if err := r.Write(&text, time.UTC); err != nil {
		t.Fatal(err)
	}
	const want = `container app: is being started, since 12:00:13; fix the container runtime of node n1, if it takes too long

Pod default/web, pending as of 12:00:20
├─ admission  12:00:00  done in 0s      
├─ sandbox    12:00:00  done in 80ms    
├─ image app  12:00:00  done in 2s      3.5 MB, 2 attempts, earlier: first try
└─ start app  12:00:13  running for 7s  
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

func TestNode(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	condition := func(kind v1.NodeConditionType, s v1.ConditionStatus, message string) v1.NodeCondition {
		return v1.NodeCondition{Type: kind, Status: s, Message: message, LastTransitionTime: metav1.NewTime(at(-60))}
	}
	none := func(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }
	for name, c := range map[string]struct {
		conditions []v1.NodeCondition
		slow       bool
		want       string
	}{
		"unknown": {nil, false, "node n1: is not known by the API server yet; fix the API server, or the node's connection to it"},
		"ready":   {[]v1.NodeCondition{condition(v1.NodeReady, "True", "")}, false, "node n1: is ready, since 11:59:00"},
		"not ready": {[]v1.NodeCondition{condition(v1.NodeReady, "False", "container runtime is down")}, false,
			"node n1: is not ready (container runtime is down), since 11:59:00; fix what the message names"},
		"pressure": {[]v1.NodeCondition{condition(v1.NodeDiskPressure, "True", "full"), condition(v1.NodeReady, "True", "")}, false,
			"node n1: has too little disk space (full), since 11:59:00; fix what fills its disk, or evictionHard of the node"},
		"slow": {[]v1.NodeCondition{condition(v1.NodeReady, "True", "")}, true,
			"node n1: is ready, but 1 of its 1 pods are not up; slowest step: image, for 1m40s in 1 pods, since 11:59:00"},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			if c.slow {
				b.Track(newPod("app"), Starting, nil, noon)
				b.Begin("u1", Step{Image, "app"}, noon)
			}
			node.Status.Conditions = c.conditions
			if got := b.Node(node, none, at(100)).Sentence; got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestReportsAreForTerminals: pods choose images, the names of processes and the texts of errors. None of them can
// move the cursor, or look like a line of its own.
func TestReportsAreForTerminals(t *testing.T) {
	const evil = "x\x1b]0;title\a\x1b[2K\r\n\tPod is ready \x9b\u009b31m\u202e\xff"
	p := newPod("app")
	p.Spec.Containers[0].Image = evil
	b := New()
	b.Track(p, Starting, nil, noon)
	b.End("u1", Step{Image, "app"}, Because(ImageNameInvalid, "", errors.New(evil)), noon, time.Time{})
	b.End("u1", Step{Volume, evil}, nil, noon, time.Time{})
	r, _ := b.Report("u1", nil, noon)
	r.Cause.Step = &Step{Kill, "app"}
	r.NameProcesses([]Process{{PID: 1, Name: evil, State: "D"}})
	n := b.Node(&v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: evil, Status: evil, Message: evil}}}},
		func(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }, noon)
	remote := Report{Namespace: evil, Name: evil, Stage: evil, Phase: evil, Steps: []StepReport{{State: evil}}} // of a kubelet that lies
	pods := NodeReport{Pods: []PodSentence{{evil, evil, evil}}}
	for name, c := range map[string]struct {
		of interface {
			Write(io.Writer, *time.Location) error
		}
		lines int
	}{"pod": {r, 6}, "node": {n, 4}, "remote pod": {remote, 4}, "remote node": {pods, 3}} {
		var text bytes.Buffer
		if err := c.of.Write(&text, time.UTC); err != nil {
			t.Fatal(err)
		}
		all := text.String() + r.Sentence
		if lines := strings.Count(all, "\n"); lines != c.lines {
			t.Errorf("%s: %d lines, want %d: %q", name, lines, c.lines, all)
		}
		for _, char := range all {
			if char != '\n' && !unicode.IsPrint(char) {
				t.Errorf("%s: %q in %q", name, char, all)
				break
			}
		}
	}
}

// TestManyProcessesAreCounted: a pod may have as many as the kernel allows.
func TestManyProcessesAreCounted(t *testing.T) {
	var r Report
	all := make([]Process, 5000)
	all[4999] = Process{PID: 7, Name: "cat", State: "D"}
	r.NameProcesses(all)
	if len(r.Processes) != maxListed || !strings.Contains(r.Sentence, "process 7 cat in state D") || !strings.Contains(r.Sentence, "4997 more") {
		t.Errorf("%d listed: %s", len(r.Processes), r.Sentence)
	}
}
