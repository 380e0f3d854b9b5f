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
	// Errors of the API server v1.37 for a patch and for a delete.
	errOther = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "a", "field is immutable")})
	errPrecondition = apierrors.NewConflict(pods, "a", errors.New("the UID in the precondition (a) does not match the UID in record (b)"))
)

// errPanic makes a request panic.
var errPanic = errors.New("broken request")

// server is a fake API server. Its log has "NAME UID PHASE" for a write and "delete NAME UID" for a
// delete.
type server struct {
	mu       sync.Mutex
	log      []string
	failures []error       // of the next requests
	took     time.Duration // each request
	inFlight map[string]int
	parallel int
	version  int
}

func (s *server) respond(name, line string) error {
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
		if err == errPanic {
			panic(err)
		}
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
	if err := s.respond(name, name+" "+string(p.UID)+" "+string(p.Status.Phase)); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	return strconv.Itoa(100 + s.version), nil
}

func (s *server) DeletePod(_ context.Context, _, name string, uid types.UID) error {
	return s.respond(name, "delete "+name+" "+string(uid))
}

// takeLog waits until the publisher is idle and returns what was logged since the last call.
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

// bench runs a publisher with a fake server and a fake clock for one test.
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
