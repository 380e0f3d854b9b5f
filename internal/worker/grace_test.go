package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// A Stop is cancelled only for a shorter grace period: its preStop hooks would run again, and
// its grace period begin again.
func TestOnlyShorterGracePeriodCancelsStop(t *testing.T) {
	for name, c := range map[string]struct {
		first func(p *Pool, of *v1.Pod)
		then  int64 // the grace period of the deletion that follows
		want  []string
	}{
		"pod_ended_by_itself_same_grace":      {first: ended, then: 30, want: []string{"stop a 30"}},
		"pod_ended_by_itself_longer_grace":    {first: ended, then: 60, want: []string{"stop a 30"}},
		"pod_ended_by_itself_shorter_grace":   {first: ended, then: 5, want: []string{"stop a 30", "stop a 5"}},
		"pod_preempted_same_grace":            {first: preempted, then: 30, want: []string{"stop a 30"}},
		"pod_preempted_shorter_grace":         {first: preempted, then: 1, want: []string{"stop a 30", "stop a 1"}},
		"pod_deleted_twice_with_longer_grace": {first: deletedWithin(10), then: 30, want: []string{"stop a 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSteps()
				s.on["stop"] = func(ctx context.Context, _ pod.Work) (pod.Outcome, error) {
					<-ctx.Done()
					return pod.Outcome{}, ctx.Err()
				}
				p := run(t, s)
				a := named("a")
				thirty := int64(30)
				a.Spec.TerminationGracePeriodSeconds = &thirty
				s.on["sync"] = func(_ context.Context, w pod.Work) (pod.Outcome, error) {
					return pod.Outcome{Ended: w.Pod.Labels["done"] != ""}, nil
				}
				p.Handle(pod.Change{Op: pod.Add, Pod: a}, nil)
				settle()
				c.first(p, a)
				settle()
				deleted := deleted("a", c.then)
				deleted.Spec = a.Spec
				p.Handle(pod.Change{Op: pod.Delete, Pod: deleted}, nil)
				settle()
				s.expect(t, "sync a")
				if len(a.Labels) > 0 {
					s.expect(t, "sync a")
				}
				s.expect(t, c.want...)
				if len(s.seen) > 0 {
					t.Errorf("unexpected step %q", <-s.seen)
				}
			})
		})
	}
}

// settle runs the goroutines until all of them wait.
func settle() {
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// ended marks the pod as completed: its containers exit, and its sidecars have to be stopped.
func ended(p *Pool, of *v1.Pod) {
	of.Labels = map[string]string{"done": "yes"}
	p.Handle(pod.Change{Op: pod.Update, Pod: of}, nil)
}

func preempted(p *Pool, of *v1.Pod) { p.Evict(of.UID, pod.Failure{Reason: "Preempting"}, nil) }

func deletedWithin(grace int64) func(p *Pool, of *v1.Pod) {
	return func(p *Pool, of *v1.Pod) {
		deleted := deleted(of.Name, grace)
		deleted.Spec = of.Spec
		p.Handle(pod.Change{Op: pod.Delete, Pod: deleted}, nil)
	}
}
