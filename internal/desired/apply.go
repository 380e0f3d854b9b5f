package desired

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Apply takes in what a source wants now and returns what that changes: removals first,
// then deletions, updates, additions (oldest pod first) and reconciles, so that what a
// pod gives up is free before another claims it. A pod that arrives with its deletion
// timestamp set is an Add: someone has to find out whether it still runs.
func (d *Pods) Apply(s pod.Snapshot) []pod.Change {
	d.mu.Lock()
	defer d.mu.Unlock()

	pods, mirrors := split(s)
	before := d.bySource[s.Source]
	after := make(map[types.UID]wanted, len(pods))
	var changes []pod.Change
	for _, given := range pods {
		if _, twice := after[given.UID]; twice {
			continue
		}
		now, op, changed := d.merge(s.Source, before, given)
		after[given.UID] = now
		if changed {
			changes = append(changes, pod.Change{Op: op, Pod: now.pod})
		}
	}
	for uid, old := range before {
		if _, still := after[uid]; !still {
			changes = append(changes, pod.Change{Op: pod.Remove, Pod: old.pod})
		}
	}
	d.bySource[s.Source] = after
	d.index()
	if s.Source == pod.SourceAPI {
		changes = d.pair(mirrors, changes)
	}
	for i := range changes {
		changes[i].Mirror = d.mirrorOf(changes[i].Pod)
	}
	slices.SortStableFunc(changes, inOrder)
	return changes
}

// split tells mirrors from pods to run. Only the API server can hold mirrors.
func split(s pod.Snapshot) (pods []*v1.Pod, mirrors map[string]*v1.Pod) {
	if s.Source != pod.SourceAPI {
		return s.Pods, nil
	}
	mirrors = map[string]*v1.Pod{}
	for _, p := range s.Pods {
		if pod.IsMirror(p) {
			mirrors[pod.FullName(p)] = p
		} else {
			pods = append(pods, p)
		}
	}
	return pods, mirrors
}

// merge compares a pod with what was known of it.
func (d *Pods) merge(source pod.Source, before map[types.UID]wanted, given *v1.Pod) (now wanted, op pod.Op, changed bool) {
	old, known := before[given.UID]
	if !known {
		seen := d.clock.Now().Format(time.RFC3339Nano)
		return wanted{given, annotate(d.fields.DropDisabled(given), source, seen)}, pod.Add, true
	}
	if old.given == given {
		return old, 0, false
	}
	op, changed = compare(old.given, given)
	return wanted{given, annotate(d.fields.DropDisabled(given), source, old.pod.Annotations[pod.AnnotationSeen])}, op, changed
}

// annotate returns a copy that says where and when the pod was first seen. Sources share
// their objects with caches, so they are never written to.
func annotate(given *v1.Pod, source pod.Source, seen string) *v1.Pod {
	p := *given
	p.Annotations = make(map[string]string, len(given.Annotations)+2)
	maps.Copy(p.Annotations, given.Annotations)
	p.Annotations[pod.AnnotationSource] = string(source)
	p.Annotations[pod.AnnotationSeen] = seen
	return &p
}

// index rebuilds the look-ups; a node's few hundred pods make that cheaper than being
// clever. Where an API pod bears the name of a static pod, the static one keeps it.
func (d *Pods) index() {
	clear(d.byUID)
	clear(d.byName)
	for _, source := range []pod.Source{pod.SourceAPI, pod.SourceHTTP, pod.SourceFile} {
		for uid, now := range d.bySource[source] {
			d.byUID[uid] = now.pod
			d.byName[pod.FullName(now.pod)] = now.pod
		}
	}
}

// pair takes in the mirrors and asks for a second look at each static pod whose mirror
// came, went or changed.
func (d *Pods) pair(mirrors map[string]*v1.Pod, changes []pod.Change) []pod.Change {
	before := d.mirrors
	d.mirrors = mirrors
	touched := map[string]bool{}
	for name, mirror := range mirrors {
		if old := before[name]; old != mirror && !equality.Semantic.DeepEqual(old, mirror) {
			touched[name] = true
		}
	}
	for name := range before {
		if mirrors[name] == nil {
			touched[name] = true
		}
	}
	for name := range touched {
		if p := d.byName[name]; p != nil && pod.IsStatic(p) {
			changes = append(changes, pod.Change{Op: pod.Reconcile, Pod: p})
		}
	}
	return changes
}

var rank = map[pod.Op]int{pod.Remove: 0, pod.Delete: 1, pod.Update: 2, pod.Add: 3, pod.Reconcile: 4}

func inOrder(a, b pod.Change) int {
	if a.Op != b.Op {
		return rank[a.Op] - rank[b.Op]
	}
	if c := a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(pod.FullName(a.Pod), pod.FullName(b.Pod))
}
