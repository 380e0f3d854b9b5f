package server

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"swiftlet/internal/why"
)

// noStatuses has no status of any pod.
type noStatuses struct{}

func (noStatuses) Get(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

// withSteps serves the steps of one pod, whose sandbox cannot be created.
func withSteps(_ *Config, d *Deps) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tracker := why.New()
	tracker.Track(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}, why.Starting, nil, now)
	tracker.End("u", why.Step{Kind: why.Sandbox}, errors.New("no address left"), now, now.Add(10*time.Second))
	d.Why = WhyView{Steps: tracker, Statuses: noStatuses{}, Clock: clocktesting.NewFakePassiveClock(now.Add(time.Second)),
		Object: func() *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}} }}
}

func TestWhyPod(t *testing.T) {
	n := start(t, true, withSteps)
	const sentence = "sandbox: the container runtime cannot create it, with the pod's network (no address left), " +
		"since 12:00:00, next try at 12:00:10; fix the CNI network or the container runtime of the node"
	code, body, _ := n.get("GET", "/why/ns/web", n.credentials()["admin cert"])
	if first, _, _ := strings.Cut(body, "\n"); code != 200 || first != sentence {
		t.Errorf("%d, first line %q\nwant %q", code, first, sentence)
	}
	code, body, _ = n.get("GET", "/why/ns/web?output=json", n.credentials()["admin cert"])
	var report why.Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != 200 || report.Sentence != sentence || len(report.Steps) != 2 {
		t.Errorf("%d, %v: %s", code, err, body)
	}
}

// TestWhyNamesProcesses: a pod that does not end names its processes, those first that cannot be killed.
func TestWhyNamesProcesses(t *testing.T) {
	n := start(t, true, func(c *Config, d *Deps) {
		withSteps(c, d)
		view := d.Why.(WhyView)
		now := view.Clock.Now()
		view.Steps.Track(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}, why.Stopping, nil, now)
		view.Steps.Begin("u", why.Step{Kind: why.Kill, Name: "app"}, now)
		view.Processes = func(types.UID) ([]why.Process, error) {
			return []why.Process{{PID: 7, Name: "sh", State: "S"}, {PID: 8, Name: "cat", State: "D"}, {PID: 9, Name: "x", State: "S"}, {PID: 10, Name: "y", State: "S"}}, nil
		}
		d.Why = view
	})
	_, body, _ := n.get("GET", "/why/ns/web", n.credentials()["admin cert"])
	if want := "(process 8 cat in state D, process 7 sh in state S, process 9 x in state S, 1 more), since 12:00:01;"; !strings.Contains(body, want) {
		t.Errorf("no %q in\n%s", want, body)
	}
}

func TestWhyNode(t *testing.T) {
	n := start(t, true, withSteps)
	code, body, _ := n.get("GET", "/why?output=json", n.credentials()["admin cert"])
	var report why.NodeReport
	if err := json.Unmarshal([]byte(body), &report); err != nil || code != 200 || report.Node != "n1" || report.NotUp != 1 || report.Pods[0].Name != "web" {
		t.Errorf("%d, %v: %s", code, err, body)
	}
}

// TestWhyIsNotOnReadOnlyPort: the port authenticates no client.
func TestWhyIsNotOnReadOnlyPort(t *testing.T) {
	for _, r := range start(t, true, withSteps).server.readOnlyRoutes() {
		if strings.HasPrefix(r.path, "/why") {
			t.Errorf("the read-only port serves %s", r.path)
		}
	}
}
