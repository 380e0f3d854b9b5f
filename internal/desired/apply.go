package desired

import (
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
	known, seen := d.bySource[s.Source]
	if !seen {
		known = map[types.UID]desiredPod{}
		d.bySource[s.Source] = known
	}
	d.partial[s.Source] = s.Partial
	d.round++
	var changes []pod.Change
	listed := 0
	for _, original := range pods {
		old, found := known[original.UID]
		if found && old.round == d.round {
			continue // a duplicate
		}
		listed++
		now, op, changed := d.merge(s.Source, old, found, original)
		now.round = d.round
		known[original.UID] = now
		if now.pod != old.pod {
			if found && pod.FullName(old.pod) != pod.FullName(now.pod) {
				d.unindex(old.pod) // a manifest that sets a UID has another name
			}
			d.index(s.Source, now.pod)
		}
		if changed {
			changes = append(changes, pod.Change{Op: op, Pod: now.pod})
		}
	}
	if listed < len(known) {
		changes = append(changes, d.removeUnlisted(s.Source)...)
	}
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
	pods = make([]*v1.Pod, 0, len(s.Pods))
	for _, p := range s.Pods {
		if pod.IsMirror(p) {
			mirrors[pod.FullName(p)] = p
		} else {
			pods = append(pods, p)
		}
	}
	return pods, mirrors
}

// merge compares a pod with its previous version, if there is one.
func (d *Pods) merge(source pod.Source, old desiredPod, known bool, original *v1.Pod) (now desiredPod, op pod.Op, changed bool) {
	if !known {
		seen := d.clock.Now().Format(time.RFC3339Nano)
		return desiredPod{original: original, pod: annotate(d.fields.DropDisabled(original), source, seen)}, pod.Add, true
	}
	if old.original == original {
		return old, 0, false
	}
	op, changed = compare(old.original, original)
	seen := old.pod.Annotations[pod.AnnotationSeen]
	return desiredPod{original: original, pod: annotate(d.fields.DropDisabled(original), source, seen)}, op, changed
}

// removeUnlisted drops the pods that were not in the last snapshot of the source.
func (d *Pods) removeUnlisted(source pod.Source) (changes []pod.Change) {
	for uid, old := range d.bySource[source] {
		if old.round != d.round {
			delete(d.bySource[source], uid)
			changes = append(changes, pod.Change{Op: pod.Remove, Pod: old.pod})
		}
	}
	for _, c := range changes {
		d.unindex(c.Pod)
	}
	return changes
}

// annotate returns a copy with annotations for the source and the time when the pod was first seen. The source of the
// API server's pods sets them itself, so that these, which may be many, are in memory once. Sources share their objects
// with caches, so annotate must not change original.
func annotate(original *v1.Pod, source pod.Source, seen string) *v1.Pod {
	if _, set := original.Annotations[pod.AnnotationSeen]; set && source == pod.SourceAPI {
		return original
	}
	p := *original
	p.Annotations = pod.WithOrigin(original.Annotations, source, seen)
	return &p
}

// precedence orders the sources that have a pod with the same UID or name: a static pod wins over a pod of
// the API server.
var precedence = []pod.Source{pod.SourceFile, pod.SourceHTTP, pod.SourceAPI}

// index makes a pod of the source known by UID and name, unless a source that wins has another.
func (d *Pods) index(source pod.Source, p *v1.Pod) {
	name := pod.FullName(p)
	if other := d.byUID[p.UID]; other == nil || !wins(other, source) {
		d.byUID[p.UID] = p
	}
	if other := d.byName[name]; other == nil || !wins(other, source) {
		d.byName[name] = p
	}
}

// wins reports whether an indexed pod is of a source that wins over the given one.
func wins(indexed *v1.Pod, over pod.Source) bool {
	source := pod.Source(indexed.Annotations[pod.AnnotationSource])
	return slices.Index(precedence, source) < slices.Index(precedence, over)
}

// unindex forgets a pod that its source has removed. Another pod with its UID or name, of another source or
// newer, takes its place.
func (d *Pods) unindex(p *v1.Pod) {
	name := pod.FullName(p)
	if d.byUID[p.UID] == p {
		delete(d.byUID, p.UID)
		for _, source := range slices.Backward(precedence) {
			if now, found := d.bySource[source][p.UID]; found {
				d.byUID[p.UID] = now.pod
			}
		}
	}
	if d.byName[name] != p {
		return
	}
	delete(d.byName, name)
	for _, source := range slices.Backward(precedence) {
		for _, now := range d.bySource[source] {
			if now.pod.Name == p.Name && now.pod.Namespace == p.Namespace {
				d.byName[name] = now.pod
			}
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
