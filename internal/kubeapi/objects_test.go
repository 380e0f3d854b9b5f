package kubeapi

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"swiftlet/test/poll"

	"swiftlet/internal/kubeclient/kubeclienttest"
)

const waitTimeout = 10 * time.Second

type fixture struct {
	*Objects
	client  *fake.Clientset
	changes chan Ref
}

// start runs an object store on a fake API server that holds the given objects.
func start(t *testing.T, cfg ObjectsConfig, clk clock.WithTicker, objects ...runtime.Object) *fixture {
	t.Helper()
	client := fake.NewClientset(objects...)
	o, err := NewObjects(cfg, ObjectsDeps{Client: kubeclienttest.Wrap(client), Clock: clk, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Objects: o, client: client, changes: make(chan Ref, 100)}
	o.OnChange(func(kind, namespace, name string) { f.changes <- Ref{kind, namespace, name} })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	poll.Until(t, "the store to run", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.running != nil })
	return f
}

func (f *fixture) expectChange(t *testing.T, want Ref) {
	t.Helper()
	select {
	case got := <-f.changes:
		if got != want {
			t.Fatalf("notified of a change of %v, want %v", got, want)
		}
	case <-time.After(waitTimeout):
		t.Fatalf("not notified of the change of %v", want)
	}
}

func (f *fixture) expectNoChange(t *testing.T) {
	t.Helper()
	select {
	case got := <-f.changes:
		t.Fatalf("notified of a change of %v, want none", got)
	default:
	}
}

// requests counts calls of one verb on one resource.
func (f *fixture) requests(verb, resource string) (n int) {
	for _, a := range f.client.Actions() {
		if a.Matches(verb, resource) {
			n++
		}
	}
	return n
}

func configMap(name, value string) *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", ResourceVersion: value,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations:   map[string]string{v1.LastAppliedConfigAnnotation: "{}"},
		},
		Data: map[string]string{"key": value},
	}
}

func podUsing(uid string, volumes ...v1.Volume) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}, Spec: v1.PodSpec{Volumes: volumes}}
}

func configMapVolume(name string) v1.Volume {
	return v1.Volume{Name: "v-" + name, VolumeSource: v1.VolumeSource{
		ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}}
}

func read(t *testing.T, f *fixture, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	got, err := f.ConfigMap(ctx, "ns", name)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	if len(got.ManagedFields) > 0 || len(got.Annotations) > 0 {
		t.Errorf("%s has managed fields or the last-applied annotation", name)
	}
	return got.Data["key"]
}

func TestWatchNotifiesOfChanges(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{}, configMap("a", "1"))
	f.Register(podUsing("p", configMapVolume("a")))
	if got := read(t, f, "a"); got != "1" {
		t.Fatalf("read %q, want 1", got)
	}
	f.expectNoChange(t) // the first value of a watch is no change

	if _, err := f.client.CoreV1().ConfigMaps("ns").Update(t.Context(), configMap("a", "2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectChange(t, Ref{KindConfigMap, "ns", "a"})
	if got := read(t, f, "a"); got != "2" {
		t.Errorf("read %q after the change, want 2", got)
	}
	if n := f.requests("get", "configmaps"); n != 0 {
		t.Errorf("%d direct reads, want none but the watch", n)
	}
}

// After a restore of etcd, another write of the object may have the same resource version.
func TestReusedVersionIsAChange(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{}, configMap("a", "1"))
	f.Register(podUsing("p", configMapVolume("a")))
	if got := read(t, f, "a"); got != "1" {
		t.Fatalf("read %q, want 1", got)
	}
	other := configMap("a", "1")
	other.Data["key"] = "2"
	if err := f.items[Ref{KindConfigMap, "ns", "a"}].Replace([]any{other}, "1"); err != nil {
		t.Fatal(err)
	}
	f.expectChange(t, Ref{KindConfigMap, "ns", "a"})
}

func TestMissingObjectIsNotifiedOnCreation(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{})
	f.Register(podUsing("p", configMapVolume("a")))
	if _, err := f.ConfigMap(t.Context(), "ns", "a"); !apierrors.IsNotFound(err) {
		t.Fatalf("read of a missing object: %v, want NotFound", err)
	}
	if _, err := f.client.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("a", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectChange(t, Ref{KindConfigMap, "ns", "a"})
	if got := read(t, f, "a"); got != "1" {
		t.Errorf("read %q, want 1", got)
	}
}

func TestForbiddenWatchFallsBackToGet(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{}, configMap("a", "1"))
	f.client.PrependReactor("list", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1.Resource("configmaps"), "a", nil)
	})
	f.Register(podUsing("p", configMapVolume("a")))
	if got := read(t, f, "a"); got != "1" {
		t.Errorf("read %q, want 1 by a direct read", got)
	}
}

// A pod may name any number of objects. Few are watched; the others are read when they are used, and their changes are
// found as well.
func TestWatchesOfOnePodAreLimited(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	names := make([]string, 0, 3*maxWatches)
	var volumes []v1.Volume
	var objects []runtime.Object
	for i := range cap(names) {
		name := fmt.Sprintf("c-%04d", i)
		names, volumes, objects = append(names, name), append(volumes, configMapVolume(name)), append(objects, configMap(name, "1"))
	}
	f := start(t, ObjectsConfig{}, clk, objects...)
	f.Register(podUsing("hostile", volumes...))
	last := names[len(names)-1]
	for _, name := range []string{names[0], last} {
		if got := read(t, f, name); got != "1" {
			t.Errorf("%s has %q", name, got)
		}
	}
	poll.Until(t, "the watches", func() bool { return f.requests("watch", "configmaps") >= maxWatches })
	if n := f.requests("watch", "configmaps"); n != maxWatches {
		t.Errorf("%d watches, want %d", n, maxWatches)
	}
	update := func(value string) {
		t.Helper()
		if _, err := f.client.CoreV1().ConfigMaps("ns").Update(t.Context(), configMap(last, value), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update("2")
	poll.Until(t, "the timer of the check", clk.HasWaiters)
	clk.Step(time.Minute)
	f.expectChange(t, Ref{KindConfigMap, "ns", last})
	if got := read(t, f, last); got != "2" {
		t.Errorf("%s has %q after its change", last, got)
	}
	f.Register(podUsing("other", configMapVolume(last))) // which may watch it
	poll.Until(t, "one more watch", func() bool { return f.requests("watch", "configmaps") == maxWatches+1 })
	read(t, f, last)
	update("3")
	f.expectChange(t, Ref{KindConfigMap, "ns", last})
}

func TestImmutableObjectStopsWatch(t *testing.T) {
	cm := configMap("a", "1")
	yes := true
	cm.Immutable = &yes
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{}, cm)
	f.Register(podUsing("p", configMapVolume("a")))
	read(t, f, "a")
	item := f.items[Ref{KindConfigMap, "ns", "a"}]
	if item.stop != nil {
		t.Error("the watch of an immutable object still runs")
	}
	if got := read(t, f, "a"); got != "1" {
		t.Errorf("second read %q, want 1", got)
	}
}

func TestWatchEndsWithItsLastUser(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyWatch}, clock.RealClock{}, configMap("a", "1"), configMap("b", "1"))
	one, two := podUsing("one", configMapVolume("a"), configMapVolume("b")), podUsing("two", configMapVolume("a"))
	f.Register(one)
	f.Register(one) // a repeated registration counts once
	f.Register(two)
	f.Unregister(one)
	if got := f.inUse(); len(got) != 1 || got[0].ref.Name != "a" {
		t.Fatalf("in use after the first pod left: %d objects, want only a", len(got))
	}
	f.Unregister(two)
	f.Unregister(two)
	if got := f.inUse(); len(got) != 0 {
		t.Errorf("%d objects in use without pods", len(got))
	}
}

func TestCacheExpiresAfterTTL(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	f := start(t, ObjectsConfig{Strategy: StrategyCache, Poll: time.Hour}, clk, configMap("a", "1"))
	f.Register(podUsing("p", configMapVolume("a")))
	read(t, f, "a")
	read(t, f, "a")
	if n := f.requests("get", "configmaps"); n != 1 {
		t.Fatalf("%d reads within the TTL, want 1", n)
	}
	clk.Step(2 * time.Minute)
	read(t, f, "a")
	if n := f.requests("get", "configmaps"); n != 2 {
		t.Fatalf("%d reads after the TTL, want 2", n)
	}
	f.Register(podUsing("q", configMapVolume("a")))
	read(t, f, "a")
	if n := f.requests("get", "configmaps"); n != 3 {
		t.Errorf("%d reads, want a fresh one for a new pod", n)
	}
}

func TestPollDue(t *testing.T) {
	const poll = 20 * time.Second
	for _, c := range []struct {
		strategy     Strategy
		ttl, elapsed time.Duration
		want         bool
	}{
		{StrategyGet, time.Minute, poll, true},
		{StrategyCache, time.Minute, poll, false},
		{StrategyCache, time.Minute, 2 * poll, false},
		{StrategyCache, time.Minute, 3*poll - time.Millisecond, true}, // ticks are not exact
		{StrategyCache, 0, poll, true},
		{StrategyCache, poll, poll - time.Millisecond, true},
	} {
		o := &Objects{cfg: ObjectsConfig{Strategy: c.strategy, Poll: poll, TTL: func() time.Duration { return c.ttl }}}
		if got := o.pollDue(c.elapsed); got != c.want {
			t.Errorf("%s, TTL %s: due %s after the last round: %v, want %v", c.strategy, c.ttl, c.elapsed, got, c.want)
		}
	}
}

func TestCacheWithoutTTLReadsEveryTime(t *testing.T) {
	f := start(t, ObjectsConfig{Strategy: StrategyCache, TTL: func() time.Duration { return 0 }}, testclock.NewFakeClock(time.Now()), configMap("a", "1"))
	f.Register(podUsing("p", configMapVolume("a")))
	read(t, f, "a")
	read(t, f, "a")
	if n := f.requests("get", "configmaps"); n != 2 {
		t.Errorf("%d requests for 2 reads", n)
	}
}

func TestGetReadsEveryTimeAndPollsForChanges(t *testing.T) {
	clk := testclock.NewFakeClock(time.Now())
	f := start(t, ObjectsConfig{Strategy: StrategyGet}, clk, configMap("a", "1"))
	f.Register(podUsing("p", configMapVolume("a")))
	read(t, f, "a")
	read(t, f, "a")
	if n := f.requests("get", "configmaps"); n != 2 {
		t.Fatalf("%d requests for 2 reads", n)
	}
	if _, err := f.client.CoreV1().ConfigMaps("ns").Update(t.Context(), configMap("a", "2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the poll to wait", clk.HasWaiters)
	clk.Step(time.Minute)
	f.expectChange(t, Ref{KindConfigMap, "ns", "a"})
}

func TestReferences(t *testing.T) {
	local := func(name string) v1.LocalObjectReference { return v1.LocalObjectReference{Name: name} }
	p := podUsing("p",
		configMapVolume("volume"),
		v1.Volume{VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "volume-secret"}}},
		v1.Volume{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{Secret: &v1.SecretProjection{LocalObjectReference: local("projected-secret")}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: local("projected")}},
		}}}},
		v1.Volume{VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{NodePublishSecretRef: &v1.LocalObjectReference{Name: "csi"}}}},
	)
	p.Spec.ImagePullSecrets = []v1.LocalObjectReference{local("pull")}
	p.Spec.InitContainers = []v1.Container{{EnvFrom: []v1.EnvFromSource{
		{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: local("from")}},
		{SecretRef: &v1.SecretEnvSource{LocalObjectReference: local("from-secret")}},
	}}}
	p.Spec.Containers = []v1.Container{{Env: []v1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: local("volume")}}}, // again
		{ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: local("env")}}},
		{ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: local("env-secret")}}},
	}}}
	want := []Ref{
		{KindConfigMap, "ns", "volume"}, {KindConfigMap, "ns", "projected"}, {KindConfigMap, "ns", "from"}, {KindConfigMap, "ns", "env"},
		{KindSecret, "ns", "volume-secret"}, {KindSecret, "ns", "projected-secret"}, {KindSecret, "ns", "csi"},
		{KindSecret, "ns", "pull"}, {KindSecret, "ns", "from-secret"}, {KindSecret, "ns", "env-secret"},
	}
	slices.SortFunc(want, Ref.compare)
	if got := References(p); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
