package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
	"swiftlet/internal/kubeclient/kubeclienttest"
)

// podList is the store of the watch of pods in these tests.
type podList struct{ cache.Store }

func (l podList) Known() []metav1.Object {
	var all []metav1.Object
	for _, o := range l.List() {
		all = append(all, o.(metav1.Object))
	}
	return all
}

// knownRun is one run of the agent's watches on an API server that may be down.
type knownRun struct {
	known   *LastKnown
	objects *Objects
	tokens  *Tokens
	pods    podList
	down    atomic.Bool
	stop    func()
}

var errDown = errors.New("connection refused")

// runKnown starts a run.
func runKnown(t *testing.T, dir string, down bool, objects ...runtime.Object) *knownRun {
	t.Helper()
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the others include one that sleeps
	log, real := slog.New(slog.DiscardHandler), clock.RealClock{}
	known, err := NewLastKnown(LastKnownConfig{On: true, RootDir: dir, NodeName: "n"}, LastKnownDeps{Clock: real, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(objects...)
	r := &knownRun{known: known, pods: podList{cache.NewStore(cache.MetaNamespaceKeyFunc)}}
	r.down.Store(down)
	client.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		if r.down.Load() {
			return true, nil, errDown
		}
		known.Contacted()
		if a.GetSubresource() == "token" {
			expires := metav1.NewTime(time.Now().Add(time.Hour))
			return true, &authv1.TokenRequest{Status: authv1.TokenRequestStatus{Token: "secret-token", ExpirationTimestamp: expires}}, nil
		}
		return false, nil, nil
	})
	client.PrependWatchReactor("*", func(ktesting.Action) (bool, watch.Interface, error) {
		if r.down.Load() {
			return true, nil, errDown
		}
		return false, nil, nil
	})
	r.objects, err = NewObjects(ObjectsConfig{}, ObjectsDeps{Client: kubeclienttest.Wrap(client), Clock: real, Log: log, LastKnown: known})
	if err != nil {
		t.Fatal(err)
	}
	if r.tokens, err = NewTokens(TokensDeps{Client: kubeclienttest.Wrap(client), Clock: real, Log: log}); err != nil {
		t.Fatal(err)
	}
	known.Keep(r.tokens)
	pods := Reflector{Client: client, Sample: &v1.Pod{}, Store: r.pods, LastKnown: known, Options: cache.ReflectorOptions{Name: "pods"},
		Source: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.CoreV1().Pods("").List(ctx, o)
			},
			WatchFuncWithContext: client.CoreV1().Pods("").Watch,
		}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 3)
	go func() { _ = known.Run(ctx); done <- struct{}{} }()
	go func() { _ = r.objects.Run(ctx); done <- struct{}{} }()
	go func() { pods.Run(ctx); done <- struct{}{} }()
	r.stop = func() {
		cancel()
		for range cap(done) {
			<-done
		}
	}
	synctest.Wait()
	return r
}

var (
	webPod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"},
		Spec:       v1.PodSpec{ImagePullSecrets: []v1.LocalObjectReference{{Name: "s"}}},
	}
	webSecret    = &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"k": []byte("v")}}
	tokenRequest = &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{BoundObjectRef: &authv1.BoundObjectReference{Kind: "Pod", Name: "web", UID: "1"}}}
)

// learn runs with the API server until the file is written.
func learn(t *testing.T, dir string) {
	t.Helper()
	r := runKnown(t, dir, false, webPod, webSecret)
	defer r.stop()
	r.objects.Register(webPod)
	if _, err := r.objects.Secret(t.Context(), "ns", "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.tokens.Value(t.Context(), "ns", "default", tokenRequest); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestLastKnownIsUsedWithoutAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		learn(t, dir)
		r := runKnown(t, dir, true)
		defer r.stop()
		time.Sleep(outageAfter - time.Millisecond)
		synctest.Wait()
		if n := len(r.pods.List()); n != 0 {
			t.Fatalf("%d pods before the API server had its time", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(r.pods.List()); n != 1 {
			t.Fatalf("%d pods, want that of the file", n)
		}
		r.objects.Register(webPod)
		synctest.Wait()
		got, err := r.objects.Secret(t.Context(), "ns", "s")
		if err != nil || string(got.Data["k"]) != "v" {
			t.Errorf("secret %v, %v", got, err)
		}
		if token, err := r.tokens.Value(t.Context(), "ns", "default", tokenRequest); err != nil || token != "secret-token" {
			t.Errorf("token %q, %v", token, err)
		}
		// The API server is back, without the pod: its word wins.
		r.down.Store(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(r.pods.List()); n != 0 {
			t.Errorf("%d pods, want those of the API server", n)
		}
	})
}

func TestLastKnownIsNotUsedAfterContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		learn(t, dir)
		r := runKnown(t, dir, true)
		defer r.stop()
		r.known.Contacted()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(r.pods.List()); n != 0 {
			t.Errorf("%d pods of the file, but the API server has responded", n)
		}
	})
}

// The watch of an object may begin after the only pod that uses it has ended.
func TestLastKnownForgetsWhatWasUsedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runKnown(t, t.TempDir(), false, webPod, webSecret)
		defer r.stop()
		r.objects.Register(webPod)
		r.objects.Unregister(webPod)
		synctest.Wait()
		r.known.mu.Lock()
		defer r.known.mu.Unlock()
		if _, kept := r.known.stores["Secret ns/s"]; kept {
			t.Error("the Secret is still followed")
		}
	})
}

// Only root may read the file, and it has nothing of pods that are gone.
func TestLastKnownFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, LastKnownFile)
		r := runKnown(t, dir, false, webPod, webSecret)
		defer r.stop()
		r.objects.Register(webPod)
		time.Sleep(time.Minute)
		synctest.Wait()
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Fatalf("mode %v, %v, want 0600", info.Mode(), err)
		}
		has := func(watch string) bool {
			var c content
			if err := checkpoint.Read(path, &c); err != nil {
				t.Fatal(err)
			}
			_, ok := c.Objects[watch]
			return ok
		}
		if !has("Secret ns/s") {
			t.Error("the secret is not kept")
		}
		r.objects.Unregister(webPod)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if has("Secret ns/s") {
			t.Error("the secret of a removed pod is kept")
		}
	})
}

func TestLastKnownOfAnotherNodeOrDamaged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"another node": func(path string) error {
			return checkpoint.Write(path, content{NodeName: "other", Objects: map[string][]json.RawMessage{"pods": {}}})
		},
		"truncated": func(path string) error { return os.Truncate(path, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				learn(t, dir)
				if err := change(filepath.Join(dir, LastKnownFile)); err != nil {
					t.Fatal(err)
				}
				r := runKnown(t, dir, true)
				defer r.stop()
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := len(r.pods.List()); n != 0 {
					t.Errorf("%d pods of a file that must not be used", n)
				}
			})
		})
	}
}

// Contact without a change is recorded in the time of the file, once a minute. No watch runs, as its lists
// would write the file.
func TestLastKnownContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		learn(t, dir)
		config := LastKnownConfig{On: true, RootDir: dir, NodeName: "n"}
		deps := LastKnownDeps{Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)}
		known, err := NewLastKnown(config, deps)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = known.Run(ctx) }()
		known.Contacted()
		time.Sleep(30 * time.Minute)
		known.Contacted()
		synctest.Wait()
		want := time.Now()
		time.Sleep(time.Minute / 2)
		known.Contacted() // too soon
		synctest.Wait()
		again, err := NewLastKnown(config, deps)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.loaded.Contact; !got.Equal(want) {
			t.Errorf("last contact %v, want %v", got, want)
		}
	})
}
