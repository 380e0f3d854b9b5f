package status

import (
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/pod"
)

// waiting is the status of a pod whose container waits.
func waiting(reason string) v1.PodStatus {
	s := phase(v1.PodPending)
	s.ContainerStatuses = []v1.ContainerStatus{{Name: "c", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}}
	return s
}

// A pod that is up within half a second costs one write. Whatever else happens is written at once.
func TestFirstStatusWaitsForTheStart(t *testing.T) {
	const soon = startDelay / 2
	for name, c := range map[string]struct {
		change func(p *v1.Pod, s *v1.PodStatus) // of the first status
		then   func(b *bench)
		want   string // "time: writes"
	}{
		"up_soon":      {then: func(b *bench) { time.Sleep(soon); b.Set(aPod("a"), phase(v1.PodRunning)) }, want: "250ms: a a Running"},
		"slow":         {want: "500ms: a a Pending"},
		"initializing": {change: func(_ *v1.Pod, s *v1.PodStatus) { *s = waiting(pod.ReasonInitializing) }, want: "500ms: a a Pending"},
		"changes_while_it_waits": {
			then: func(b *bench) {
				time.Sleep(soon)
				s := waiting(pod.ReasonCreating)
				s.HostIP = "10.0.0.1"
				b.Set(aPod("a"), s)
			},
			want: "500ms: a a Pending",
		},
		"fails_soon":     {then: func(b *bench) { time.Sleep(soon); b.Set(aPod("a"), waiting("ErrImagePull")) }, want: "250ms: a a Pending"},
		"fails_at_once":  {change: func(_ *v1.Pod, s *v1.PodStatus) { *s = waiting("ErrImagePull") }, want: "0s: a a Pending"},
		"has_a_message":  {change: func(_ *v1.Pod, s *v1.PodStatus) { s.Message = "no" }, want: "0s: a a Pending"},
		"rejected":       {change: func(_ *v1.Pod, s *v1.PodStatus) { *s = phase(v1.PodFailed) }, want: "0s: a a Failed"},
		"deleted_later":  {then: func(b *bench) { time.Sleep(soon); b.Set(deleted(aPod("a")), waiting(pod.ReasonCreating)) }, want: "250ms: a a Pending"},
		"ends_soon":      {then: func(b *bench) { time.Sleep(soon); b.Finish(deleted(aPod("a"))) }, want: "250ms: a a Failed, delete a a"},
		"forgotten":      {then: func(b *bench) { b.Forget("a") }, want: ""},
		"after_a_status": {change: func(p *v1.Pod, _ *v1.PodStatus) { p.Status.StartTime = &metav1.Time{Time: time.Unix(1e9, 0)} }, want: "0s: a a Pending"},
		"write_fails": {
			then: func(b *bench) {
				b.server.fail(errors.New("no"))
				time.Sleep(startDelay)
			},
			want: "600ms: a a Pending",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				began, s, p := time.Now(), waiting(pod.ReasonCreating), aPod("a")
				if c.change != nil {
					c.change(p, &s)
				}
				b.Set(p, s)
				if c.then != nil {
					c.then(b)
				}
				for log := ""; time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
					if log = b.server.takeLog(); log == "" {
						continue
					}
					if got := fmt.Sprintf("%v: %s", time.Since(began), log); got != c.want {
						b.Errorf("server saw %s, want %s", got, c.want)
					}
					return
				}
				if c.want != "" {
					b.Errorf("nothing was written, want %s", c.want)
				}
			})
		})
	}
}
