package standalone

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/pod"
)

var testNow = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func testPod(name string, phase v1.PodPhase, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main"}}},
		Status:     v1.PodStatus{Phase: phase, StartTime: &metav1.Time{Time: testNow.Add(-90 * time.Second)}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func waiting(reason string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", RestartCount: 3,
			State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}}
	}
}

func awaitingGPU() *v1.Pod {
	return testPod("gpu", v1.PodPending, waiting(pod.ReasonWaitingForDevice), func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].State.Waiting.Message = "no device plugin offers example.com/gpu"
	})
}

// shown are pods without notes, except one named crash.
func shown(pods ...*v1.Pod) (all []shownPod) {
	for _, p := range pods {
		s := shownPod{Pod: p}
		if p.Name == "crash" {
			s.note = "container main: exits with code 2"
		}
		all = append(all, s)
	}
	return all
}

func TestTable(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	sidecar := testPod("sidecar", v1.PodRunning, func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "once"}, {Name: "stays", RestartPolicy: &always}}
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "once", Ready: true}, {Name: "stays", Ready: true}}
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", Ready: true}}
		p.Status.PodIP = "10.88.0.7"
	})
	deleted := testPod("deleted", v1.PodRunning, func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: testNow} })
	got := table(shown(
		testPod("crash", v1.PodRunning, waiting("CrashLoopBackOff")), deleted, awaitingGPU(),
		testPod("job", v1.PodSucceeded, waiting("Completed")),
		testPod("new", "", func(p *v1.Pod) { p.Status.StartTime = nil }), sidecar,
	), testNow, false)
	want := `NAMESPACE   NAME      STATUS             READY   RESTARTS   AGE   IP
default     crash     CrashLoopBackOff   0/1     3          1m    -
  container main: exits with code 2
default     deleted   Terminating        0/1     0          1m    -
default     gpu       WaitingForDevice   0/1     3          1m    -
  no device plugin offers example.com/gpu
default     job       Completed          0/1     3          1m    -
default     new       Pending            0/1     0          -     -
default     sidecar   Running            2/2     0          1m    10.88.0.7
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Colours stand for up, on its way and failed, and move no column.
func TestColours(t *testing.T) {
	up := testPod("up", v1.PodRunning, func(p *v1.Pod) { p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", Ready: true}} })
	got := table(shown(testPod("crash", v1.PodRunning, waiting("CrashLoopBackOff")), testPod("job", v1.PodSucceeded), testPod("new", v1.PodPending), testPod("unready", v1.PodRunning), up), testNow, true)
	want := `NAMESPACE   NAME      STATUS             READY   RESTARTS   AGE   IP
default     crash     <31>CrashLoopBackOff<0>   0/1     3          1m    -
  <31>container main: exits with code 2<0>
default     job       <2>Completed<0>          0/1     0          1m    -
default     new       <33>Pending<0>            0/1     0          1m    -
default     unready   <33>Running<0>            0/1     0          1m    -
default     up        <32>Running<0>            1/1     0          1m    -
`
	if got = regexp.MustCompile(`\x1b\[(\d+)m`).ReplaceAllString(got, "<$1>"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What is being pulled is below the table while a pod waits.
func TestPullsAreShown(t *testing.T) {
	var out bytes.Buffer
	d := newTestDisplay(&out, func() int { return 24 })
	d.pulls.store = t.TempDir()
	contentStore{t, d.pulls.store}.writing("a", 1_500_000)
	d.Show(testPod("web", v1.PodPending), "")
	if next := d.draw(); next != time.Second || !strings.Contains(out.String(), "  pulling images: 1.5 MB\x1b[K\n") {
		t.Errorf("next redraw in %v after %q", next, out.String())
	}
}

func newTestDisplay(out *bytes.Buffer, rows func() int) *Display {
	paths := Paths{root: "/var/lib/swiftlet", run: "/run/swiftlet", bundle: "/b"}
	return newDisplay(out, rows, clocktesting.NewFakeClock(testNow), Config{Paths: paths, Manifests: "/m", Port: 10250})
}

func TestLinePrintedOnlyOnChange(t *testing.T) {
	var out bytes.Buffer
	d := newTestDisplay(&out, nil)
	steps := []struct {
		do   func()
		want string
	}{
		{func() { d.Show(testPod("web", v1.PodPending), "") }, "12:00:00 default/web Pending ready 0/1 restarts 0 ip -\n"},
		{func() { d.Show(testPod("web", v1.PodPending), "") }, ""},
		{func() { d.Show(testPod("web", v1.PodSucceeded), "") }, "12:00:00 default/web Completed ready 0/1 restarts 0 ip -\n"},
		{func() { d.Forget("uid-web") }, "12:00:00 gone: default/web Completed ready 0/1 restarts 0 ip -\n"},
		{func() { d.Forget("uid-web") }, ""},
		{func() { d.Show(testPod("slow", v1.PodPending), "volume data: its mount has not come back") },
			"12:00:00 default/slow Pending ready 0/1 restarts 0 ip -\n12:00:00 default/slow is not up: volume data: its mount has not come back\n"},
		{func() { d.Show(testPod("slow", v1.PodPending), "volume data: its mount has not come back") }, ""},
		{func() { d.Show(testPod("slow", v1.PodPending), "sandbox: the container runtime cannot create it") },
			"12:00:00 default/slow is not up: sandbox: the container runtime cannot create it\n"},
		{func() { d.Show(testPod("slow", v1.PodPending), "") }, ""},
		{func() { d.Forget("uid-slow") }, "12:00:00 gone: default/slow Pending ready 0/1 restarts 0 ip -\n"},
		{func() { d.Show(awaitingGPU(), "") }, "12:00:00 default/gpu WaitingForDevice ready 0/1 restarts 3 ip -: no device plugin offers example.com/gpu\n"},
	}
	for i, s := range steps {
		out.Reset()
		s.do()
		d.draw()
		if out.String() != s.want {
			t.Errorf("step %d: got %q, want %q", i, out.String(), s.want)
		}
	}
}

func TestRedrawOnlyOnChange(t *testing.T) {
	var out bytes.Buffer
	d := newTestDisplay(&out, func() int { return 24 })
	d.Show(testPod("web", v1.PodPending), "")
	if next := d.draw(); next != time.Minute {
		t.Errorf("next redraw in %v, want a minute", next)
	}
	out.Reset()
	d.draw()
	if out.Len() != 0 {
		t.Errorf("draw without a change wrote %q", out.String())
	}
	d.Show(testPod("young", v1.PodPending, func(p *v1.Pod) { p.Status.StartTime.Time = testNow }), "")
	if next := d.draw(); next != time.Second {
		t.Errorf("next redraw in %v, want a second", next)
	}
	if !strings.HasPrefix(out.String(), "\x1b[2A\r") {
		t.Errorf("the redraw does not begin two lines up, at the first row of the table: %q", out.String())
	}
}

func TestNextSteps(t *testing.T) {
	web := testPod("web", v1.PodRunning, func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 8080}} })
	for name, c := range map[string]struct {
		pods []*v1.Pod
		want []string
	}{
		"no running pod":                      {[]*v1.Pod{testPod("a", v1.PodPending)}, nil},
		"running pod while one is pending":    {[]*v1.Pod{testPod("a", v1.PodPending), testPod("b", v1.PodRunning)}, nil},
		"running pod while one awaits device": {[]*v1.Pod{awaitingGPU(), testPod("b", v1.PodRunning)}, []string{"https://127.0.0.1:10250/pods\n"}},
		"running pod with host port":          {[]*v1.Pod{testPod("a", v1.PodPending), web}, []string{"curl http://127.0.0.1:8080/\n", "tail -F /var/lib/swiftlet/log/pods/default_web_uid-web/main/0.log\n", "> /m/more.json\n"}},
		"no host port: call the agent's API":  {[]*v1.Pod{testPod("b", v1.PodRunning)}, []string{"--key /var/lib/swiftlet/pki/admin.key https://127.0.0.1:10250/pods\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := nextSteps(newTestDisplay(nil, nil).cfg, shown(c.pods...))
			if (got == "") != (c.want == nil) {
				t.Fatalf("got %q", got)
			}
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q is not in:\n%s", w, got)
				}
			}
		})
	}
}

func TestTruncateRows(t *testing.T) {
	const four = "HEAD\na\nb\nc\n"
	for rows, want := range map[int]string{
		0: four, 24: four, 5: four,
		4: "HEAD\na\n… and 2 more\n",
		3: "HEAD\n… and 3 more\n",
	} {
		if got := truncateRows(four, rows); got != want {
			t.Errorf("%d rows: got %q, want %q", rows, got, want)
		}
	}
	if got, want := truncateRows("HEAD\na\nb\n  note\nc\n  note\n", 4), "HEAD\na\n… and 2 more\n"; got != want {
		t.Errorf("with notes: got %q, want %q", got, want)
	}
}
