package kubeapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// fakeServer is an API server with one ConfigMap. Like a real one it accepts a watch at a
// version that it has not reached, and then omits all events up to that version.
type fakeServer struct {
	mu          sync.Mutex
	unreachable error // why it is unreachable
	version     int
	data        string
	expires     bool                       // every watch ends at once: its version is too old
	rejects     bool                       // so does the request for the watch
	watches     map[*watch.FakeWatcher]int // the version that each starts at
	requests    []string
}

func (s *fakeServer) object() *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: strconv.Itoa(s.version)},
		Data:       map[string]string{"k": s.data},
	}
}

func (s *fakeServer) recordRequest(verb string, o metav1.ListOptions) error {
	s.requests = append(s.requests, fmt.Sprintf("%s %q", verb, o.ResourceVersion))
	return s.unreachable
}

// requestLog returns the requests so far.
func (s *fakeServer) requestLog() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *fakeServer) list(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.recordRequest("list", o); err != nil {
		return nil, err
	}
	return &v1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}, Items: []v1.ConfigMap{*s.object()}}, nil
}

func (s *fakeServer) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.recordRequest("watch", o); err != nil {
		return nil, err
	}
	w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 100})
	if s.expires && len(s.requests) < 1000 { // requests without a delay would never end on synctest's time
		expired := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}
		if s.rejects {
			return nil, &apierrors.StatusError{ErrStatus: expired}
		}
		w.Error(&expired)
		w.Stop()
		return w, nil
	}
	from, _ := strconv.Atoi(o.ResourceVersion)
	if o.SendInitialEvents != nil {
		w.Add(s.object())
		w.Action(watch.Bookmark, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		from = s.version
	}
	s.watches[w] = from
	return w, nil
}

func (s *fakeServer) write(data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.data = s.version+1, data
	for w, from := range s.watches {
		if s.version > from {
			w.Modify(s.object())
		}
	}
}

// stop ends all watches and fails later requests with err.
func (s *fakeServer) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable = err
	for w := range s.watches {
		w.Stop()
	}
	clear(s.watches)
}

func (s *fakeServer) start(version int, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable, s.version, s.data = nil, version, data
}

// replace ends all watches and continues with other data at once.
func (s *fakeServer) replace(version int, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.data = version, data
	for w := range s.watches {
		w.Stop()
	}
	clear(s.watches)
}

// listsOnly is a client that does not support streaming lists.
type listsOnly struct{}

func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// startReflector runs a Reflector of the server for the length of a test.
func startReflector(t *testing.T, s *fakeServer, client any) cache.Store {
	return startReflectorOf(t, s, client, s.list, s.watch)
}

func startReflectorOf(t *testing.T, s *fakeServer, client any, list cache.ListWithContextFunc, watches cache.WatchFuncWithContext) cache.Store {
	return startReflectorWith(t, s, nil, client, list, watches)
}

func startReflectorWith(t *testing.T, s *fakeServer, reconnects *Reconnects, client any, list cache.ListWithContextFunc, watches cache.WatchFuncWithContext) cache.Store {
	// The other handlers include one that sleeps in real time.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	s.watches = map[*watch.FakeWatcher]int{}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r := Reflector{
		Client: client, Sample: &v1.ConfigMap{}, Store: store, Reconnects: reconnects,
		Source: &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watches},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	t.Cleanup(func() {
		began := time.Now()
		cancel()
		<-done
		if took := time.Since(began); took > 0 {
			t.Errorf("stopped after %v", took)
		}
	})
	return store
}

var statusUnavailable = apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}}

func expectData(t *testing.T, store cache.Store, want string) {
	t.Helper()
	synctest.Wait()
	got, ok, err := store.GetByKey("ns/c")
	if err != nil || !ok || got.(*v1.ConfigMap).Data["k"] != want {
		t.Errorf("store has %v, want %s", got, want)
	}
}

// TestReflectorOfExpiringWatches: an API server that ends every watch because its version is too old gets
// few requests.
func TestReflectorOfExpiringWatches(t *testing.T) {
	for name, c := range map[string]struct {
		client  any
		rejects bool
	}{"streaming lists": {nil, false}, "lists": {listsOnly{}, false}, "rejected streaming lists": {nil, true}, "rejected watches": {listsOnly{}, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{version: 1, data: "a", expires: true, rejects: c.rejects}
				store := startReflector(t, s, c.client)
				time.Sleep(time.Minute)
				if got := len(s.requestLog()); got > 30 {
					t.Errorf("%d requests in a minute, want at most 30", got)
				}
				s.mu.Lock()
				s.expires = false
				s.mu.Unlock()
				time.Sleep(time.Minute)
				expectData(t, store, "a")
			})
		})
	}
}

func TestReflectorAfterEtcdRestore(t *testing.T) {
	for name, client := range map[string]any{"streamed lists": nil, "lists": listsOnly{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{version: 100, data: "old"}
				store := startReflector(t, s, client)
				expectData(t, store, "old")
				s.write("new")
				expectData(t, store, "new")
				time.Sleep(time.Hour)
				s.stop(fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
				time.Sleep(10 * time.Second)
				s.start(50, "restored")
				time.Sleep(30 * time.Second)
				expectData(t, store, "restored")
				s.write("after") // its watch begins at the restored version
				expectData(t, store, "after")
			})
		})
	}
}

// client-go retries some requests itself, which can hide an outage.
func TestReflectorAfterInterruptedWatch(t *testing.T) {
	for name, client := range map[string]any{"streamed lists": nil, "lists": listsOnly{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{version: 100, data: "old"}
				store := startReflector(t, s, client)
				expectData(t, store, "old")
				time.Sleep(time.Minute)
				s.replace(50, "restored")
				time.Sleep(time.Second)
				expectData(t, store, "restored")
				s.write("after")
				expectData(t, store, "after")
			})
		})
	}
}

// A watch that ended at its deadline continues without a list.
func TestReflectorContinuesWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{version: 100, data: "old"}
		var seconds int64
		store := startReflectorOf(t, s, listsOnly{}, s.list, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			seconds = *o.TimeoutSeconds
			return s.watch(ctx, o)
		})
		expectData(t, store, "old")
		time.Sleep(time.Duration(seconds) * time.Second)
		s.stop(nil)
		time.Sleep(time.Minute)
		s.write("new")
		expectData(t, store, "new")
		if got, want := fmt.Sprint(s.requestLog()), `[list "0" watch "100" watch "100"]`; got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
	})
}

// A proxy in front of an unreachable API server responds for it.
func TestReflectorBehindProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{version: 100, data: "old"}
		store := startReflector(t, s, listsOnly{})
		expectData(t, store, "old")
		time.Sleep(time.Hour)
		s.stop(&statusUnavailable)
		time.Sleep(10 * time.Second)
		s.start(50, "restored")
		time.Sleep(30 * time.Second)
		expectData(t, store, "restored")
		for _, request := range s.requestLog()[3:] { // list, watch, and the watch that failed
			if request == `list "0"` || request == `list "100"` {
				t.Errorf("after the outage: %s", request)
			}
		}
	})
}

func TestReflectorStopsDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{version: 100, data: "old"}
		startReflector(t, s, nil)
		time.Sleep(time.Hour)
		s.stop(fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		time.Sleep(time.Hour)
		if tries := len(s.requestLog()); tries < 60 || tries > 400 {
			t.Errorf("%d requests in an hour without an API server", tries)
		}
	})
}
