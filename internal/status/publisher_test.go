package status

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	errDown = errors.New("connection refused")
	errGone = apierrors.NewNotFound(pods, "a")
	// As the API server v1.37 words them, for a patch and for a delete.
	errOther = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "a", "field is immutable")})
	errPrecondition = apierrors.NewConflict(pods, "a", errors.New("the UID in the precondition (a) does not match the UID in record (b)"))
)

// server is an API server as far as the publisher can tell. Its log reads
// "NAME UID PHASE" for a write, "delete NAME UID" for a delete.
type server struct {
	mu       sync.Mutex
	log      []string
	failures []error       // of the next requests
	took     time.Duration // each request
	inFlight map[string]int
	parallel int
	version  int
}

func (s *server) answer(name, line string) error {
	s.mu.Lock()
	if s.inFlight == nil {
		s.inFlight = map[string]int{}
	}
	s.inFlight[name]++
	if s.inFlight[name] > 1 {
		s.log = append(s.log, "TWO WRITES OF "+name)
	}
	s.parallel = max(s.parallel, len(s.inFlight))
	s.mu.Unlock()
	time.Sleep(s.took)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[name]--; s.inFlight[name] == 0 {
		delete(s.inFlight, name)
	}
	if len(s.failures) > 0 {
		err := s.failures[0]
		s.failures = s.failures[1:]
		if err != nil {
			return err
		}
	}
	s.log = append(s.log, line)
	return nil
}

func (s *server) PatchStatus(_ context.Context, _, name string, patch []byte) (string, error) {
	var p v1.Pod
	if err := json.Unmarshal(patch, &p); err != nil {
		return "", err
	}
	if err := s.answer(name, name+" "+string(p.UID)+" "+string(p.Status.Phase)); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return strconv.Itoa(100 + s.version), nil
}

func (s *server) DeletePod(_ context.Context, _, name string, uid types.UID) error {
	return s.answer(name, "delete "+name+" "+string(uid))
}

// takeLog returns what was logged since the last call, once all is quiet.
func (s *server) takeLog() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.log, ", ")
	s.log = nil
	return text
}

func (s *server) fail(errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, errs...)
}

// bench runs a publisher against a server for the length of a test, in fake time.
type bench struct {
	*Publisher
	*testing.T
	server  *server
	mirrors map[string]*v1.Pod
}

func run(t *testing.T, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, server: &server{}, mirrors: map[string]*v1.Pod{}}
		b.Publisher = newPublisher(t, b.server, func(p *v1.Pod) *v1.Pod { return b.mirrors[p.Name] })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Publisher.Run(ctx) }()
		test(b)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func newPublisher(t *testing.T, client Client, mirror func(*v1.Pod) *v1.Pod) *Publisher {
	t.Helper()
	p, err := New(Config{}, Deps{
		Client: client,
		Mirror: mirror,
		Clock:  clock.RealClock{},
		Jitter: func() float64 { return 1 },
		Log:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bench) expect(want string) {
	b.Helper()
	if got := b.server.takeLog(); got != want {
		b.Errorf("server saw %q, want %q", got, want)
	}
}

func aPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
}

func deleted(p *v1.Pod) *v1.Pod {
	p = p.DeepCopy()
	p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	return p
}

func phase(p v1.PodPhase) v1.PodStatus { return v1.PodStatus{Phase: p} }

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

func TestNothingIsWrittenThatTheServerHas(t *testing.T) {
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

func TestChangesDuringAWriteAreJoined(t *testing.T) {
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
		// One success tells all: b does not wait out its back-off. The latest alone is written.
		if log := b.server.takeLog(); log != "a a Succeeded, b b Pending" || time.Since(began) != 0 {
			b.Errorf("server saw %q after %v", log, time.Since(began))
		}
		time.Sleep(time.Hour)
		b.expect("")
	})
}

func TestARefusedPodDoesNotHoldUpOthers(t *testing.T) {
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

func TestFinalStatusIsWrittenBeforeTheDelete(t *testing.T) {
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

func TestDeleteIsTriedAgain(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(nil, errDown, errDown)
		b.Set(aPod("a"), phase(v1.PodSucceeded))
		b.Finish(deleted(aPod("a")))
		time.Sleep(time.Minute)
		b.expect("a a Succeeded, delete a a")
	})
}

func TestDeleteOfAnotherPodIsNotTriedAgain(t *testing.T) {
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

func TestStaticPod(t *testing.T) {
	run(t, func(b *bench) {
		static := aPod("s")
		static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		b.Set(static, phase(v1.PodRunning))
		time.Sleep(time.Hour)
		b.expect("") // no mirror yet
		b.mirrors["s"] = aPod("s")
		b.mirrors["s"].UID = "m1"
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

func TestWithoutAServerStatusIsRemembered(t *testing.T) {
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

func TestSetDoesNotKeepTheCallersMemory(t *testing.T) {
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
