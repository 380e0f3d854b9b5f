package runtime

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

func TestStopContainerGrace(t *testing.T) {
	three, zero, hundred := int64(3), int64(0), int64(100)
	const pre = `lifecycle: {preStop: {exec: {command: [x]}}}`
	for name, c := range map[string]struct {
		spec     string
		deletion *int64
		how      StopOptions
		// took is how long the preStop hook runs.
		took time.Duration
		want []string
	}{
		"grace period of the pod":                        {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c}]}`, want: []string{"stop id 30s"}},
		"no grace period":                                {spec: `{containers: [{name: c}]}`, want: []string{"stop id 2s"}},
		"grace period below two seconds":                 {spec: `{terminationGracePeriodSeconds: 1, containers: [{name: c}]}`, want: []string{"stop id 2s"}},
		"deletion grace period overrides the pod's":      {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c}]}`, deletion: &three, want: []string{"stop id 3s"}},
		"caller's grace period overrides the deletion's": {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c}]}`, deletion: &three, how: StopOptions{Grace: &hundred}, want: []string{"stop id 1m40s"}},
		"grace period of the failed probe":               {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, livenessProbe: {terminationGracePeriodSeconds: 5}}]}`, how: StopOptions{Cause: StopLiveness}, want: []string{"stop id 5s"}},
		"another probe's grace period is ignored":        {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, livenessProbe: {terminationGracePeriodSeconds: 5}}]}`, how: StopOptions{Cause: StopStartup}, want: []string{"stop id 30s"}},
		"preStop hook shortens the grace period":         {spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, ` + pre + `}]}`, took: 4900 * time.Millisecond, want: []string{"exec id [x] 0s", "stop id 26s"}},
		"preStop hook uses the whole grace period":       {spec: `{terminationGracePeriodSeconds: 5, containers: [{name: c, ` + pre + `}]}`, took: time.Hour, want: []string{"exec id [x] 0s", "stop id 2s"}},
		"zero grace period skips the preStop hook":       {spec: `{containers: [{name: c, ` + pre + `}]}`, how: StopOptions{Grace: &zero}, want: []string{"stop id 2s"}},
		"grace period of more than 292 years":            {spec: `{terminationGracePeriodSeconds: 9223372036854775807, containers: [{name: c, ` + pre + `}]}`, want: []string{"exec id [x] 0s", "stop id 876000h0m0s"}},
		"container that is not in the spec":              {spec: `{terminationGracePeriodSeconds: 9}`, want: []string{"stop id 9s"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			p := testPod(t, c.spec)
			p.DeletionGracePeriodSeconds = c.deletion
			limit := time.Duration(1<<62 - 1)
			if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
				limit = pod.Seconds(*s)
			}
			b.cri.exec = func(ctx context.Context, _ []string) (cri.ExecResult, error) {
				b.clock.Step(min(c.took, limit))
				if c.took > limit {
					<-ctx.Done()
				}
				return cri.ExecResult{}, ctx.Err()
			}
			if err := b.stopContainer(context.Background(), p, &pod.Container{ID: "id", Name: "c"}, c.how); err != nil {
				t.Fatal(err)
			}
			expect(t, "calls", c.want, b.cri.calls)
		})
	}
}

func TestStopContainerEvents(t *testing.T) {
	b := newBench(t, nil)
	b.cri.exec = func(context.Context, []string) (cri.ExecResult, error) { return cri.ExecResult{ExitCode: 1}, nil }
	p := testPod(t, `{terminationGracePeriodSeconds: 3, containers: [{name: c, lifecycle: {preStop: {exec: {command: [x]}}}}]}`)
	for _, message := range []string{"", "Container c failed liveness probe, will be restarted"} {
		if err := b.stopContainer(context.Background(), p, &pod.Container{ID: "id", Name: "c"}, StopOptions{Message: message}); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "events", []string{
		"spec.containers{c} Normal Killing Stopping container c",
		"spec.containers{c} Warning FailedPreStopHook PreStopHook failed",
		"spec.containers{c} Normal Killing Container c failed liveness probe, will be restarted",
		"spec.containers{c} Warning FailedPreStopHook PreStopHook failed",
	}, b.events.all)
}

func TestStopContainersInOrder(t *testing.T) {
	p := testPod(t, `{terminationGracePeriodSeconds: 30,
		initContainers: [{name: init}, {name: s1, restartPolicy: Always}, {name: s2, restartPolicy: Always}],
		containers: [{name: a}, {name: b}, {name: gone}]}`)
	b := newBench(t, nil)
	var running []pod.Container
	for _, name := range []string{"s1", "s2", "a", "b", "a"} {
		running = append(running, pod.Container{ID: name, Name: name})
	}
	if err := b.stopInOrder(context.Background(), p, running, StopOptions{}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(b.cri.calls[:3])
	expect(t, "calls", []string{"stop a 30s", "stop a 30s", "stop b 30s", "stop s2 30s", "stop s1 30s"}, b.cri.calls)
}

func TestStopContainersWaitsNoLongerThanGrace(t *testing.T) {
	p := testPod(t, `{terminationGracePeriodSeconds: 30, initContainers: [{name: s, restartPolicy: Always}], containers: [{name: a}]}`)
	b := newBench(t, nil)
	order := newStopOrder(p, []pod.Container{{Name: "a"}, {Name: "s"}})
	waits := make(chan struct{})
	var stopped sync.WaitGroup
	stopped.Go(func() { // a never ends
		_ = b.stopContainer(context.Background(), p, &pod.Container{ID: "s", Name: "s"}, StopOptions{Turn: func(ctx context.Context) {
			close(waits)
			order.turn("s")(ctx)
		}})
	})
	<-waits
	b.clock.Step(31 * time.Second)
	stopped.Wait()
	expect(t, "calls", []string{"stop s 2s"}, b.cri.calls)
}

func TestStopContainersReturnsAllErrors(t *testing.T) {
	b := newBench(t, nil)
	one, two := errors.New("one"), errors.New("two")
	b.cri.fail["stop a 2s"], b.cri.fail["stop b 2s"] = one, two
	err := b.stopInOrder(context.Background(), testPod(t, `{containers: [{name: a}, {name: b}]}`), []pod.Container{{ID: "a", Name: "a"}, {ID: "b", Name: "b"}}, StopOptions{})
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("error %v", err)
	}
}

func TestHTTPHook(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot) // any answer will do
		requests <- r
	}))
	defer server.Close()
	host, _ := url.Parse(server.URL)
	port, _ := strconv.Atoi(host.Port())
	for name, c := range map[string]struct {
		hook  string
		ips   []string
		event bool
		fails bool
	}{
		"request to the pod's IP and a named port": {hook: `{path: "/x?y=1", port: http, httpHeaders: [{name: Host, value: me}, {name: X, value: z}]}`, ips: []string{"127.0.0.1"}},
		"HTTPS falls back to HTTP":                 {hook: `{path: "/x?y=1", port: http, scheme: HTTPS, httpHeaders: [{name: Host, value: me}, {name: X, value: z}]}`, ips: []string{"127.0.0.1"}, event: true},
		"pod without IP fails":                     {hook: `{port: http}`, fails: true},
		"unknown port name fails":                  {hook: `{port: none}`, ips: []string{"127.0.0.1"}, fails: true},
		"port out of range fails":                  {hook: `{port: 70000}`, ips: []string{"127.0.0.1"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			p := testPod(t, `{containers: [{name: c, lifecycle: {preStop: {httpGet: `+c.hook+`}}, ports: [{name: http, containerPort: `+strconv.Itoa(port)+`}]}]}`)
			spec := &p.Spec.Containers[0]
			err := b.runHook(context.Background(), hookCall{pod: p, container: spec, id: "id", podIPs: c.ips, hook: spec.Lifecycle.PreStop})
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if c.fails {
				return
			}
			got := <-requests
			if got.URL.RequestURI() != "/x?y=1" || got.Host != "me" || got.Header.Get("X") != "z" || got.UserAgent() != "kube-lifecycle/1.37" {
				t.Errorf("request %s to %s with %v", got.URL, got.Host, got.Header)
			}
			if (len(b.events.all) == 1) != c.event {
				t.Errorf("events %q", b.events.all)
			}
		})
	}
}

func TestSleepHookEndsWithItsContainer(t *testing.T) {
	b := newBench(t, nil)
	p := testPod(t, `{containers: [{name: c}]}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := b.runHook(ctx, hookCall{pod: p, container: &p.Spec.Containers[0], hook: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}}})
	want := `Sleep lifecycle hook (5) for Container "c" in Pod "p_ns(u)" failed - error: container terminated before sleep hook finished`
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if err := b.runHook(context.Background(), hookCall{pod: p, container: &p.Spec.Containers[0], hook: &v1.LifecycleHandler{}}); err == nil {
		t.Error("a hook that says nothing ran")
	}
}

func TestRestore(t *testing.T) {
	// Annotations as the recorded kubelet wrote them.
	o := pod.Observed{Ref: pod.Ref{Namespace: "golden", Name: "full", UID: "u"}, Containers: []pod.Container{
		{Name: "main", Annotations: map[string]string{
			"io.kubernetes.container.preStopHandler":         `{"exec":{"command":["sh","-c","sleep 1"]}}`,
			"io.kubernetes.container.ports":                  `[{"name":"http","containerPort":8080,"protocol":"TCP"}]`,
			"io.kubernetes.pod.terminationGracePeriod":       "5",
			"io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
		}},
		{Name: "main", Annotations: map[string]string{"io.kubernetes.container.ports": "[]"}},
		{Name: "odd", Annotations: map[string]string{"io.kubernetes.container.preStopHandler": "{", "io.kubernetes.pod.terminationGracePeriod": "soon"}},
	}}
	p := Restore(o)
	if p.Name != "full" || p.Namespace != "golden" || p.UID != "u" || *p.Spec.TerminationGracePeriodSeconds != 5 || len(p.Spec.Containers) != 2 {
		t.Fatalf("restored %+v", p)
	}
	if main := p.Spec.Containers[0]; main.Lifecycle.PreStop.Exec.Command[2] != "sleep 1" || main.Ports[0].ContainerPort != 8080 {
		t.Errorf("restored %+v", main)
	}
	if odd := p.Spec.Containers[1]; odd.Lifecycle != nil {
		t.Errorf("restored %+v from nonsense", odd)
	}
	b := newBench(t, nil)
	o.Containers[0].ID = "id"
	if err := b.stopContainer(context.Background(), p, &o.Containers[0], StopOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, "calls", []string{"exec id [sh -c sleep 1] 0s", "stop id 5s"}, b.cri.calls)
}
