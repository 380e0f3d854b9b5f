package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"swiftlet/internal/cri"
	"swiftlet/internal/pod"
)

// stubbornRuntime has containers that ignore SIGTERM, and hooks that end at the latest with their
// container.
type stubbornRuntime struct {
	*callLog
	began time.Time
	// hookTakes is how long a hook runs; zero means until its container ends.
	hookTakes time.Duration

	mu    sync.Mutex
	log   []string
	ended map[string]chan struct{}
}

func (s *stubbornRuntime) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%v: ", time.Since(s.began))+fmt.Sprintf(format, args...))
}

func (s *stubbornRuntime) ending(id string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[id] == nil {
		s.ended[id] = make(chan struct{})
	}
	return s.ended[id]
}

func (s *stubbornRuntime) StopContainer(_ context.Context, id string, grace time.Duration) error {
	s.note("stop %s within %v", id, grace)
	time.Sleep(grace)
	close(s.ending(id))
	time.Sleep(time.Millisecond) // the runtime cleans up; hooks have ended by then
	return nil
}

func (s *stubbornRuntime) ExecSync(ctx context.Context, id string, _ []string, _ time.Duration) (cri.ExecResult, error) {
	var done <-chan time.Time
	if s.hookTakes > 0 {
		done = time.After(s.hookTakes)
	}
	select {
	case <-done:
		s.note("hook of %s done", id)
		return cri.ExecResult{}, nil
	case <-s.ending(id):
		s.note("hook of %s killed", id)
		return cri.ExecResult{ExitCode: 137}, nil
	case <-ctx.Done():
		s.note("hook of %s canceled", id)
		return cri.ExecResult{}, ctx.Err()
	}
}

// A hook that uses up the grace period leaves its container two seconds, in which the hook keeps
// running. This is the reference kubelet's behaviour on each path that stops containers.
func TestPreStopHookOutlastsGrace(t *testing.T) {
	const hook = `lifecycle: {preStop: {exec: {command: [x]}}}`
	const failed = "spec.containers{c} Warning FailedPreStopHook PreStopHook failed"
	zero, one := int64(0), int64(1)
	whole := func(names ...string) func(*Runtime, context.Context, string, StopOptions) error {
		return func(r *Runtime, ctx context.Context, spec string, how StopOptions) error {
			var containers []pod.Container
			for _, name := range names {
				containers = append(containers, pod.Container{ID: name, Name: name})
			}
			return r.stopInOrder(ctx, testPod(t, spec), containers, how)
		}
	}
	alone := func(r *Runtime, ctx context.Context, spec string, how StopOptions) error {
		return r.stopContainer(ctx, testPod(t, spec), &pod.Container{ID: "c", Name: "c"}, how)
	}
	for name, c := range map[string]struct {
		spec      string
		how       StopOptions
		hookTakes time.Duration
		stop      func(*Runtime, context.Context, string, StopOptions) error
		want      []string
		fails     bool // the hook, which is an event
	}{
		"grace_period_of_the_pod": {
			spec: `{terminationGracePeriodSeconds: 3, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), fails: true,
			want: []string{"3s: stop c within 2s", "5s: hook of c killed"},
		},
		"grace_period_of_an_eviction": {
			spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), how: StopOptions{Grace: &one}, fails: true,
			want: []string{"1s: stop c within 2s", "3s: hook of c killed"},
		},
		"pod_without_grace_period_runs_its_hook_for_a_second": {
			spec: `{terminationGracePeriodSeconds: 0, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), fails: true,
			want: []string{"1s: stop c within 2s", "3s: hook of c killed"},
		},
		"override_without_grace_period_runs_the_hook_for_a_second": {
			spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), how: StopOptions{Grace: &zero}, fails: true,
			want: []string{"1s: stop c within 2s", "3s: hook of c killed"},
		},
		"container_of_a_running_pod_without_grace_period_runs_no_hook": {
			spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, ` + hook + `}]}`, stop: alone, how: StopOptions{Grace: &zero},
			want: []string{"0s: stop c within 2s"},
		},
		"grace_period_of_the_liveness_probe": {
			spec: `{terminationGracePeriodSeconds: 30, containers: [{name: c, livenessProbe: {terminationGracePeriodSeconds: 4}, ` + hook + `}]}`, stop: alone, how: StopOptions{Cause: StopLiveness}, fails: true,
			want: []string{"4s: stop c within 2s", "6s: hook of c killed"},
		},
		"hook_done_while_the_container_stops": {
			spec: `{terminationGracePeriodSeconds: 3, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), hookTakes: 4 * time.Second,
			want: []string{"3s: stop c within 2s", "4s: hook of c done"},
		},
		"hook_leaves_less_than_two_seconds": {
			spec: `{terminationGracePeriodSeconds: 3, containers: [{name: c, ` + hook + `}]}`, stop: whole("c"), hookTakes: 2500 * time.Millisecond,
			want: []string{"2.5s: hook of c done", "2.5s: stop c within 2s"},
		},
		"sidecars_stop_at_once_after_endless_hooks": {
			spec: `{terminationGracePeriodSeconds: 3, containers: [{name: main}],
				initContainers: [{name: s1, restartPolicy: Always, ` + hook + `}, {name: s2, restartPolicy: Always, ` + hook + `}, {name: s3, restartPolicy: Always, ` + hook + `}]}`,
			stop: whole("s1", "s2", "s3"),
			want: []string{
				"3s: stop s1 within 2s", "3s: stop s2 within 2s", "3s: stop s3 within 2s",
				"5s: hook of s1 killed", "5s: hook of s2 killed", "5s: hook of s3 killed",
			},
		},
		"sidecars_stop_at_once_after_a_main_container_that_takes_all_time": {
			spec: `{terminationGracePeriodSeconds: 3, containers: [{name: main}], initContainers: [{name: s1, restartPolicy: Always}, {name: s2, restartPolicy: Always}]}`,
			stop: whole("s1", "s2", "main"),
			want: []string{"0s: stop main within 3s", "3s: stop s1 within 2s", "3s: stop s2 within 2s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stubbornRuntime{began: time.Now(), hookTakes: c.hookTakes, ended: map[string]chan struct{}{}}
				b := newBench(t, func(_ *Config, d *Deps) {
					s.callLog = d.CRI.(*callLog)
					d.CRI, d.Clock = s, clock.RealClock{}
				})
				if err := c.stop(b.Runtime, t.Context(), c.spec, c.how); err != nil {
					t.Fatal(err)
				}
				slices.Sort(s.log)
				expect(t, "what happened", c.want, s.log)
				if got := slices.Contains(b.events.all, failed); got != c.fails {
					t.Errorf("failure of the hook reported: %v, want %v: %q", got, c.fails, b.events.all)
				}
			})
		})
	}
}
