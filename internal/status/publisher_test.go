package status

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

func TestOneWritePerChange(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodPending))
		b.expect("a a Pending")
		b.Set(aPod("a"), phase(v1.PodPending))
		b.expect("")
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running")
	})
}

func TestUnchangedStatusIsNotWritten(t *testing.T) {
	run(t, func(b *bench) {
		p := aPod("a")
		p.Status = phase(v1.PodRunning)
		p.Status.StartTime = &metav1.Time{Time: time.Unix(1e9, 0)}
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Unix(1e9, 0)}}
		s := phase(v1.PodRunning)
		s.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		b.Set(p, s)
		b.expect("")
		if got, _ := b.Get("a"); !got.StartTime.Equal(p.Status.StartTime) {
			b.Errorf("start time %v, want that of the API server", got.StartTime)
		}
	})
}

func TestChangesDuringWriteAreCoalesced(t *testing.T) {
	run(t, func(b *bench) {
		b.server.took = time.Second
		b.Set(aPod("a"), phase(v1.PodPending))
		synctest.Wait() // the write is under way
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		time.Sleep(5 * time.Second)
		b.expect("a a Pending, a a Succeeded")
	})
}

func TestPodsAreWrittenInParallel(t *testing.T) {
	run(t, func(b *bench) {
		b.server.took = time.Second
		for i := range 20 {
			b.Set(aPod(strconv.Itoa(i)), phase(v1.PodRunning))
		}
		time.Sleep(10 * time.Second)
		if log := b.server.takeLog(); strings.Count(log, "Running") != 20 || strings.Contains(log, "TWO") {
			b.Errorf("server saw %s", log)
		}
		if b.server.parallel != 8 {
			b.Errorf("%d writes at once, want 8", b.server.parallel)
		}
	})
}

func TestOutage(t *testing.T) {
	run(t, func(b *bench) {
		for range 1000 {
			b.server.fail(errDown)
		}
		b.Set(aPod("a"), phase(v1.PodPending))
		b.Set(aPod("b"), phase(v1.PodPending))
		time.Sleep(time.Hour)
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("")
		if left := len(b.server.failures); left > 500 || left < 100 {
			b.Errorf("%d tries in an hour, want about 720", 1000-left)
		}
		b.server.mu.Lock()
		b.server.failures = nil
		b.server.mu.Unlock()
		began := time.Now()
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		// One success ends all back-offs: b is written at once, with its latest status only.
		if log := b.server.takeLog(); log != "a a Succeeded, b b Pending" || time.Since(began) != 0 {
			b.Errorf("server saw %q after %v", log, time.Since(began))
		}
		time.Sleep(time.Hour)
		b.expect("")
	})
}

// Retry is called when the API server is available again. It may still refuse a few requests.
func TestRetryAfterOutage(t *testing.T) {
	run(t, func(b *bench) {
		for range 1000 {
			b.server.fail(errDown)
		}
		b.Set(aPod("a"), phase(v1.PodRunning))
		time.Sleep(time.Hour)
		b.server.mu.Lock()
		b.server.failures = nil
		b.server.mu.Unlock()
		b.server.fail(errDown)
		b.server.fail(errDown)
		began := time.Now()
		b.Retry()
		for b.expect(""); ; time.Sleep(10 * time.Millisecond) {
			if log := b.server.takeLog(); log != "" || time.Since(began) > time.Second {
				if log != "a a Running" {
					b.Errorf("server saw %q after %v", log, time.Since(began))
				}
				break
			}
		}
		b.Retry()
		time.Sleep(time.Hour)
		b.expect("")
	})
}

func TestRefusedPodDoesNotBlockOthers(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(apierrors.NewBadRequest("no"))
		b.Set(aPod("a"), phase(v1.PodPending))
		b.expect("")
		b.Set(aPod("b"), phase(v1.PodPending))
		b.expect("b b Pending")
		time.Sleep(time.Second)
		b.expect("a a Pending")
	})
}

func TestGone(t *testing.T) {
	for name, err := range map[string]error{"not found": errGone, "another pod of that name": errOther} {
		t.Run(name, func(t *testing.T) {
			run(t, func(b *bench) {
				b.server.fail(err)
				b.Set(aPod("a"), phase(v1.PodPending))
				time.Sleep(time.Hour)
				b.Set(aPod("a"), phase(v1.PodRunning))
				b.Finish(deleted(aPod("a")))
				time.Sleep(time.Hour)
				b.expect("")
			})
		})
	}
}

func TestFinish(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running")
		b.Set(deleted(aPod("a")), phase(v1.PodSucceeded))
		b.expect("a a Succeeded")
		b.Finish(deleted(aPod("a")))
		b.expect("delete a a")
		b.Finish(deleted(aPod("a")))
		b.Reconcile(deleted(aPod("a")))
		b.expect("")
	})
}

func TestFinalStatusIsWrittenBeforeDelete(t *testing.T) {
	run(t, func(b *bench) {
		b.server.took = time.Second
		b.Set(aPod("a"), phase(v1.PodRunning))
		synctest.Wait() // this write is under way while the pod ends
		b.Finish(deleted(aPod("a")))
		time.Sleep(5 * time.Second)
		b.expect("a a Running, a a Failed, delete a a")
	})
}

func TestFinishedPodIsDeletedLater(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(aPod("a"))
		b.expect("a a Succeeded")
		p := deleted(aPod("a"))
		p.Status, _ = b.Get("a")
		b.Reconcile(p)
		b.expect("delete a a")
	})
}

// The deletion is requested while the pod's worker finishes an earlier version. The worker then finishes
// the pod again.
func TestFinishAgainAfterDeletion(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(aPod("a"))
		b.expect("a a Succeeded")
		b.Finish(deleted(aPod("a")))
		b.expect("delete a a")
	})
}

func TestDeleteIsRetried(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(nil, errDown, errDown)
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(deleted(aPod("a")))
		time.Sleep(time.Minute)
		b.expect("a a Succeeded, delete a a")
	})
}

func TestDeleteOfAnotherPodIsNotRetried(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(nil, errPrecondition)
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(deleted(aPod("a")))
		time.Sleep(time.Minute)
		b.expect("a a Succeeded")
	})
}

func TestReconcile(t *testing.T) {
	run(t, func(b *bench) {
		b.Set(aPod("a"), phase(v1.PodRunning))
		b.expect("a a Running") // makes version 101
		mine, _ := b.Get("a")
		at := func(version string, s v1.PodStatus) *v1.Pod {
			p := aPod("a")
			p.ResourceVersion, p.Status = version, s
			return p
		}
		b.Reconcile(at("101", mine))
		b.expect("")
		b.Reconcile(at("99", phase(v1.PodPending))) // from before our write
		b.expect("")
		b.Reconcile(at("102", phase(v1.PodPending))) // someone wrote over it
		b.expect("a a Running")
		mine.Conditions = append(mine.Conditions, v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue})
		b.Reconcile(at("104", mine))
		b.expect("")
	})
}

// TestStatusIsSharedWithPod: a settled pod has one status, that of the API server's object.
func TestStatusIsSharedWithPod(t *testing.T) {
	run(t, func(b *bench) {
		p := aPod("a")
		s := phase(v1.PodRunning)
		s.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		b.Set(p, s)
		b.expect("a a Running")
		written, _ := b.Get("a")
		p = aPod("a")
		p.ResourceVersion, p.Status = "101", *written.DeepCopy()
		b.Reconcile(p)
		b.Set(p, s)
		if got, _ := b.Get("a"); &got.Conditions[0] != &p.Status.Conditions[0] {
			t.Error("the publisher has a copy of a status that the pod has, too")
		}
		before := p.Status.DeepCopy()
		s.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}}
		b.Set(p, s)
		b.expect("a a Running")
		if diff := cmp.Diff(before, &p.Status); diff != "" {
			t.Errorf("a change of the status has changed the pod: %s", diff)
		}
	})
}

// mirrorOf returns the mirror of a static pod, without a status.
func mirrorOf(static *v1.Pod, uid types.UID) *v1.Pod {
	mirror := aPod(static.Name)
	mirror.UID = uid
	mirror.Annotations = map[string]string{pod.AnnotationMirror: static.Annotations[pod.AnnotationHash]}
	return mirror
}

func TestStaticPod(t *testing.T) {
	run(t, func(b *bench) {
		static := aPod("s")
		static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		b.Set(static, phase(v1.PodRunning))
		time.Sleep(time.Hour)
		b.expect("") // no mirror yet
		b.mirrors["s"] = mirrorOf(static, "m1")
		b.Reconcile(static)
		b.expect("s m1 Running")
		b.mirrors["s"].UID = "m2" // deleted by someone and made again
		b.Reconcile(static)
		b.expect("s m2 Running")
		b.server.fail(errGone)
		b.Set(static, phase(v1.PodPending))
		b.expect("")
		b.mirrors["s"].UID = "m3"
		b.Reconcile(static)
		b.expect("s m3 Pending")
		b.Finish(static)
		b.expect("") // its mirror is no concern of ours
	})
}

func TestForget(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(errDown)
		b.Set(aPod("a"), phase(v1.PodRunning))
		synctest.Wait()
		b.Forget("a")
		time.Sleep(time.Hour)
		b.expect("")
		if _, ok := b.Get("a"); ok {
			b.Error("still there")
		}
	})
}

func TestStatusWithoutAPIServer(t *testing.T) {
	p := newPublisher(t, nil, func(*v1.Pod) *v1.Pod { return nil })
	var changes int
	p.Subscribe(func() { changes++ })
	p.Set(aPod("a"), phase(v1.PodRunning))
	p.Set(aPod("a"), phase(v1.PodRunning))
	got, ok := p.Get("a")
	if !ok || got.Phase != v1.PodRunning || changes != 1 {
		t.Errorf("status %v %v after %d changes, want Running after 1", ok, got.Phase, changes)
	}
}

func TestSetCopiesStatus(t *testing.T) {
	p := newPublisher(t, nil, func(*v1.Pod) *v1.Pod { return nil })
	s := phase(v1.PodRunning)
	s.ContainerStatuses = []v1.ContainerStatus{{Name: "c"}}
	p.Set(aPod("a"), s)
	s.ContainerStatuses[0].Name = "changed"
	got, _ := p.Get("a")
	if diff := cmp.Diff("c", got.ContainerStatuses[0].Name); diff != "" {
		t.Error(diff)
	}
}
