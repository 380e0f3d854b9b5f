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

// Apply replaces the pods of one source and returns the changes: removals first, then deletions, updates,
// additions (oldest pod first) and reconciles, so that resources are released before other pods claim
// them. A new pod with a deletion timestamp is an Add: its worker has to find out whether it still runs.
func (d *Pods) Apply(s pod.Snapshot) []pod.Change {
	d.mu.Lock()
	defer d.mu.Unlock()

	pods, mirrors := split(s)
	before := d.bySource[s.Source]
	after := make(map[types.UID]desiredPod, len(pods))
	var changes []pod.Change
	for _, original := range pods {
		if _, duplicate := after[original.UID]; duplicate {
			continue
		}
		now, op, changed := d.merge(s.Source, before, original)
		after[original.UID] = now
		if changed {
			changes = append(changes, pod.Change{Op: op, Pod: now.pod})
		}
	}
	for uid, old := range before {
		if _, still := after[uid]; !still {
			changes = append(changes, pod.Change{Op: pod.Remove, Pod: old.pod})
		}
	}
	d.bySource[s.Source], d.partial[s.Source] = after, s.Partial
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

// split separates mirrors from pods to run. Only the API server has mirrors.
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

// merge compares a pod with its previous version.
func (d *Pods) merge(source pod.Source, before map[types.UID]desiredPod, original *v1.Pod) (now desiredPod, op pod.Op, changed bool) {
	old, known := before[original.UID]
	if !known {
		seen := d.clock.Now().Format(time.RFC3339Nano)
		return desiredPod{original, annotate(d.fields.DropDisabled(original), source, seen)}, pod.Add, true
	}
	if old.original == original {
		return old, 0, false
	}
	op, changed = compare(old.original, original)
	return desiredPod{original, annotate(d.fields.DropDisabled(original), source, old.pod.Annotations[pod.AnnotationSeen])}, op, changed
}

// annotate returns a copy with annotations for the source and the time when the pod was first seen.
// Sources share their objects with caches, so it must not change original.
func annotate(original *v1.Pod, source pod.Source, seen string) *v1.Pod {
	p := *original
	p.Annotations = make(map[string]string, len(original.Annotations)+2)
	maps.Copy(p.Annotations, original.Annotations)
	p.Annotations[pod.AnnotationSource] = string(source)
	p.Annotations[pod.AnnotationSeen] = seen
	return &p
}

// index rebuilds the indexes, which is cheap for a few hundred pods. A static pod wins over a pod of the
// API server with the same name.
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

// pair replaces the mirrors and adds a Reconcile for each static pod whose mirror was added, removed or
// changed.
func (d *Pods) pair(mirrors map[string]*v1.Pod, changes []pod.Change) []pod.Change {
	before := d.mirrors
	d.mirrors = mirrors
	changed := map[string]bool{}
	for name, mirror := range mirrors {
		if old := before[name]; old != mirror && !equality.Semantic.DeepEqual(old, mirror) {
			changed[name] = true
		}
	}
	for name := range before {
		if mirrors[name] == nil {
			changed[name] = true
		}
	}
	for name := range changed {
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
