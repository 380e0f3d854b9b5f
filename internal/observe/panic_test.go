package observe

import (
	"testing"

	"swiftlet/internal/contain"
	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
	"swiftlet/test/poll"
)

// An event of a pod that cannot be handled must not end the process: the runtime sends it again after the next
// start. Events of other pods are handled, also those that come later on the same stream.
func TestPanicOfEventHarmsItsPod(t *testing.T) {
	runtime := fakecri.Start(t)
	o := start(t, runtime, Config{RelistPeriod: never, PollPeriod: never}, func(ref pod.Ref, _ *pod.Container) string {
		if ref.Name == "bad" {
			panic("broken message")
		}
		return "bye"
	})
	poll.Until(t, "subscribed and listed", func() bool {
		return runtime.Events.Subscribers() == 1 && runtime.Count("ListContainers") == 2
	})
	_, bad := runtime.RunPod("ns", "bad", "u-bad", "c")
	_, good := runtime.RunPod("ns", "good", "u-good", "c")
	o.await("u-bad", "c", "running")
	o.await("u-good", "c", "running")
	runtime.Exit(bad[0], 1)
	runtime.Exit(good[0], 1)
	o.await("u-good", "c", "exited")
	if got := o.state("u-bad", "c"); got != "running" {
		t.Errorf("the pod whose event failed is %s", got)
	}
	if n := runtime.Events.Subscribers(); n != 1 {
		t.Errorf("%d subscriptions, want the first", n)
	}
}

// A panic leaves no lock behind: all pods share it.
func TestPanicOfObservationLeavesObserverUnlocked(t *testing.T) {
	o := newObserver(t, fakecri.Start(t), Config{}, nil)
	o.store(observation{ref: pod.Ref{UID: "u"}, at: at(1), complete: true, containers: []containerEntry{ctr("a", pod.Running)}})
	o.removed = nil // written to below
	for name, observe := range map[string]func(){
		"store":  func() { o.store(observation{ref: pod.Ref{UID: "u"}, at: at(1 << 40), complete: true}) },
		"remove": func() { o.removeObject("u", "a") },
	} {
		if err := contain.Call(func() error { observe(); return nil }); err == nil {
			t.Errorf("%s: no panic", name)
		}
		if !o.mu.TryLock() {
			t.Fatalf("%s: the observer is locked", name)
		}
		o.mu.Unlock()
	}
}
