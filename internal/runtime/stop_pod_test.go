package runtime

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"swiftlet/internal/pod"
)

// TestStopPodFails has the events of the reference kubelet. After a container failed to stop, the
// reference tries the sandbox as well, and shows both failures in one event.
func TestStopPodFails(t *testing.T) {
	network := errors.New("failed to destroy network")
	const stops = "stop a 2s"
	for name, c := range map[string]struct {
		fail   map[string]error
		calls  []string
		events []string
	}{
		"nothing fails": {
			calls: []string{stops, "stop sandbox box"},
		},
		"sandbox": {
			fail:  map[string]error{"stop sandbox box": network},
			calls: []string{stops, "stop sandbox box"},
			events: []string{
				` Warning FailedKillPod error killing pod: failed to "KillPodSandbox" for "u" with KillPodSandboxError: "failed to destroy network"`,
			},
		},
		"container": {
			fail:  map[string]error{stops: status.Error(codes.DeadlineExceeded, "device or resource busy")},
			calls: []string{stops},
			events: []string{
				` Warning FailedKillPod error killing pod: failed to "KillContainer" for "a" with KillContainerError: "rpc error: code = DeadlineExceeded desc = device or resource busy"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.cri.fail = c.fail
			err := b.Stop(t.Context(), testPod(t, `{containers: [{name: a}]}`), podTargets, StopOptions{PodEnds: true})
			if (err != nil) != (len(c.fail) > 0) {
				t.Errorf("error %v", err)
			}
			expect(t, "calls", c.calls, b.cri.calls)
			expect(t, "events", append([]string{"spec.containers{a} Normal Killing Stopping container a"}, c.events...), b.events.all)
		})
	}
}

var podTargets = Targets{Containers: []pod.Container{{ID: "a", Name: "a"}}, Sandboxes: []pod.Sandbox{{ID: "box", Ready: true}}}

func TestCanceledStopSendsNoEvent(t *testing.T) {
	b := newBench(t, nil)
	b.cri.fail["stop a 2s"] = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Stop(ctx, testPod(t, `{containers: [{name: a}]}`), podTargets, StopOptions{PodEnds: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	expect(t, "calls", []string{"stop a 2s"}, b.cri.calls)
	expect(t, "events", []string{"spec.containers{a} Normal Killing Stopping container a"}, b.events.all)
}

func TestKillTextListsAllFailures(t *testing.T) {
	b := newBench(t, nil)
	b.cri.fail["stop a 2s"], b.cri.fail["stop b 2s"] = errors.New("one"), errors.New("two")
	containers := []pod.Container{{ID: "a", Name: "a"}, {ID: "b", Name: "b"}}
	err := b.Stop(t.Context(), testPod(t, `{containers: [{name: a}, {name: b}]}`), Targets{Containers: containers}, StopOptions{PodEnds: true})
	const want = `[failed to "KillContainer" for "a" with KillContainerError: "one", failed to "KillContainer" for "b" with KillContainerError: "two"]`
	if got := killText(err); got != want {
		t.Errorf("text %s, want %s", got, want)
	}
}
