package desired

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/pod"
)

var start = time.Date(2026, 11, 15, 1, 55, 29, 968780248, time.UTC)

func newPods(t *testing.T) (*Pods, *clocktesting.FakePassiveClock) {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(start)
	d, err := New(Config{Sources: []pod.Source{pod.SourceFile, pod.SourceAPI}}, Deps{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return d, clock
}

func parse(t *testing.T, text string) *v1.Pod {
	t.Helper()
	p := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func snapshot(t *testing.T, source pod.Source, pods []string) pod.Snapshot {
	s := pod.Snapshot{Source: source}
	for _, text := range pods {
		s.Pods = append(s.Pods, parse(t, text))
	}
	return s
}

// show formats a change as in the cases.
func show(c pod.Change) string {
	text := fmt.Sprintf("%s %s", c.Op, c.Pod.UID)
	if c.Mirror != nil {
		text += " mirror " + string(c.Mirror.UID)
	}
	return text
}

const (
	static1  = `{metadata: {name: s-n, uid: s1, annotations: {kubernetes.io/config.source: file, kubernetes.io/config.hash: s1}}}`
	static2  = `{metadata: {name: s-n, uid: s2, annotations: {kubernetes.io/config.source: file, kubernetes.io/config.hash: s2}}}`
	mirror1  = `{metadata: {name: s-n, uid: m1, resourceVersion: "1", annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: s1}}}`
	mirror1b = `{metadata: {name: s-n, uid: m1, resourceVersion: "2", annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: s1}}}`
	mirror1c = `{metadata: {name: s-n, uid: m1, resourceVersion: "1", annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: s0}}}`
	mirror2  = `{metadata: {name: s-n, uid: m2, resourceVersion: "3", annotations: {kubernetes.io/config.source: file, kubernetes.io/config.mirror: s1}}}`
)

func TestApply(t *testing.T) {
	type step struct {
		source  pod.Source
		pods    []string
		changes []string
	}
	for name, steps := range map[string][]step{
		"pod is added and removed": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, nil},
			{pod.SourceAPI, nil, []string{"remove a"}},
		},
		"snapshot of one source does not remove pods of another": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceFile, []string{static1}, []string{"add s1"}},
			{pod.SourceFile, nil, []string{"remove s1"}},
		},
		"changes of labels, annotations and spec are updates": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, labels: {x: y}}}`}, []string{"update a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, labels: {x: y}, annotations: {x: y}}}`}, []string{"update a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, labels: {x: y}, annotations: {x: y}}, spec: {containers: [{name: c}]}}`}, []string{"update a"}},
		},
		"changes of finalizers and resource version are ignored": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, resourceVersion: "1"}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, resourceVersion: "2", finalizers: [x]}}`}, nil},
		},
		"changed pod with the same resource version is an update": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, resourceVersion: "1"}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, resourceVersion: "1", labels: {x: y}}}`}, []string{"update a"}},
			{pod.SourceFile, []string{static1}, []string{"add s1"}},
			{pod.SourceAPI, []string{mirror1, `{metadata: {name: a, uid: a, resourceVersion: "1", labels: {x: y}}}`}, []string{"reconcile s1 mirror m1"}},
			{pod.SourceAPI, []string{mirror1c, `{metadata: {name: a, uid: a, resourceVersion: "1", labels: {x: y}}}`}, []string{"reconcile s1 mirror m1"}},
		},
		"change of status is a reconcile": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}, status: {phase: Running}}`}, []string{"reconcile a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, labels: {x: y}}, status: {phase: Failed}}`}, []string{"update a"}},
		},
		"graceful deletion, then a shorter grace period": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, deletionTimestamp: "2026-11-15T02:00:30Z", deletionGracePeriodSeconds: 30}}`}, []string{"delete a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, deletionTimestamp: "2026-11-15T02:00:30Z", deletionGracePeriodSeconds: 30}, status: {phase: Failed}}`}, []string{"reconcile a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a, deletionTimestamp: "2026-11-15T02:00:05Z", deletionGracePeriodSeconds: 0}, status: {phase: Failed}}`}, []string{"delete a"}},
		},
		"pod is recreated with the same name": {
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`}, []string{"add a"}},
			{pod.SourceAPI, []string{`{metadata: {name: a, uid: b}}`}, []string{"remove a", "add b"}},
		},
		"order of changes": {
			{pod.SourceAPI, []string{
				`{metadata: {name: r, uid: r}}`, `{metadata: {name: d, uid: d}}`, `{metadata: {name: u, uid: u}}`, `{metadata: {name: c, uid: c}}`,
			}, []string{"add c", "add d", "add r", "add u"}},
			{pod.SourceAPI, []string{
				`{metadata: {name: c, uid: c}, status: {phase: Running}}`,
				`{metadata: {name: new, uid: new, creationTimestamp: "2026-11-15T02:00:02Z"}}`,
				`{metadata: {name: old, uid: old, creationTimestamp: "2026-11-15T02:00:01Z"}}`,
				`{metadata: {name: u, uid: u, labels: {x: y}}}`,
				`{metadata: {name: d, uid: d, deletionTimestamp: "2026-11-15T02:00:30Z"}}`,
			}, []string{"remove r", "delete d", "update u", "add old", "add new", "reconcile c"}},
		},
		"mirror is added, changed, replaced and removed": {
			{pod.SourceFile, []string{static1}, []string{"add s1"}},
			{pod.SourceAPI, []string{mirror1}, []string{"reconcile s1 mirror m1"}},
			{pod.SourceAPI, []string{mirror1}, nil},
			{pod.SourceAPI, []string{mirror1b}, []string{"reconcile s1 mirror m1"}},
			{pod.SourceAPI, []string{mirror2}, []string{"reconcile s1 mirror m2"}},
			{pod.SourceAPI, nil, []string{"reconcile s1"}},
		},
		"static pod changes while its mirror stays": {
			{pod.SourceAPI, []string{mirror1}, nil},
			{pod.SourceFile, []string{static1}, []string{"add s1 mirror m1"}},
			{pod.SourceFile, []string{static2}, []string{"remove s1 mirror m1", "add s2 mirror m1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newPods(t)
			for i, step := range steps {
				var got []string
				for _, c := range d.Apply(snapshot(t, step.source, step.pods)) {
					got = append(got, show(c))
				}
				if diff := cmp.Diff(step.changes, got); diff != "" {
					t.Errorf("step %d: %s", i, diff)
				}
			}
		})
	}
}

func TestFirstSeenIsKept(t *testing.T) {
	d, clock := newPods(t)
	want := map[string]string{
		"kubernetes.io/config.seen":   "2026-11-15T01:55:29.968780248Z",
		"kubernetes.io/config.source": "api",
		"mine":                        "1",
	}
	original := parse(t, `{metadata: {name: a, uid: a, annotations: {mine: "1"}}}`)
	first := d.Apply(pod.Snapshot{Source: pod.SourceAPI, Pods: []*v1.Pod{original}})
	if diff := cmp.Diff(want, first[0].Pod.Annotations); diff != "" {
		t.Error(diff)
	}
	if len(original.Annotations) != 1 {
		t.Errorf("the source's object was changed: %v", original.Annotations)
	}
	clock.SetTime(start.Add(time.Hour))
	second := d.Apply(snapshot(t, pod.SourceAPI, []string{`{metadata: {name: a, uid: a, labels: {x: y}, annotations: {mine: "1"}}}`}))
	if diff := cmp.Diff(want, second[0].Pod.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestReadyAndOrphans(t *testing.T) {
	d, _ := newPods(t)
	orphans := func() (uids []types.UID) {
		for _, m := range d.OrphanMirrors() {
			uids = append(uids, m.UID)
		}
		return uids
	}
	d.Apply(snapshot(t, pod.SourceAPI, []string{mirror1}))
	if d.Ready() || orphans() != nil {
		t.Errorf("ready %v, orphans %v with one source of two", d.Ready(), orphans())
	}
	d.Apply(snapshot(t, pod.SourceFile, []string{static1}))
	if !d.Ready() || orphans() != nil {
		t.Errorf("ready %v, orphans %v", d.Ready(), orphans())
	}
	d.Apply(snapshot(t, pod.SourceFile, nil))
	if got := orphans(); !slices.Equal(got, []types.UID{"m1"}) {
		t.Errorf("orphans %v, want m1", got)
	}
}

func TestIndexes(t *testing.T) {
	d, _ := newPods(t)
	d.Apply(snapshot(t, pod.SourceAPI, []string{mirror1, `{metadata: {name: a, namespace: x, uid: a}}`}))
	d.Apply(snapshot(t, pod.SourceFile, []string{static1}))
	if p, ok := d.Get("s1"); !ok || d.MirrorOf(p).UID != "m1" {
		t.Error("static pod without its mirror")
	}
	if _, ok := d.Get("m1"); ok {
		t.Error("a mirror is listed as a desired pod")
	}
	if p, ok := d.GetByFullName("a_x"); !ok || p.UID != "a" || d.MirrorOf(p) != nil {
		t.Error("API pod not found by name")
	}
	if len(d.List()) != 2 {
		t.Errorf("%d pods, want 2", len(d.List()))
	}
	d.Apply(snapshot(t, pod.SourceFile, nil))
	if _, ok := d.GetByFullName("s-n_"); ok {
		t.Error("removed pod is found by name")
	}
}

func TestUnchangedPodIsNotCopied(t *testing.T) {
	d, _ := newPods(t)
	s := snapshot(t, pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`})
	before := d.Apply(s)[0].Pod
	if changes := d.Apply(s); changes != nil {
		t.Errorf("changes %v", changes)
	}
	if after, _ := d.Get("a"); after != before {
		t.Error("an unchanged pod was copied")
	}
}

// A partial snapshot has pods, but does not show which pods were removed.
func TestPartialSnapshotIsNotReady(t *testing.T) {
	d, _ := newPods(t)
	d.Apply(snapshot(t, pod.SourceFile, nil))
	partial := snapshot(t, pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`})
	partial.Partial = true
	if changes := d.Apply(partial); len(changes) != 1 || d.Ready() {
		t.Errorf("changes %v, ready %v", changes, d.Ready())
	}
	if changes := d.Apply(snapshot(t, pod.SourceAPI, []string{`{metadata: {name: a, uid: a}}`})); len(changes) != 0 || !d.Ready() {
		t.Errorf("changes %v, ready %v", changes, d.Ready())
	}
}
