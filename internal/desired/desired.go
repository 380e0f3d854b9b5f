package desired

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// Config is the configuration of Pods.
type Config struct {
	// Sources are all sources. Ready is false until each has sent a snapshot.
	Sources []pod.Source
	// Fields drops the fields of pods whose feature gates are off.
	Fields pod.GatedFields
}

// Deps are the dependencies of Pods.
type Deps struct {
	Clock clock.PassiveClock
}

// Pods is the set of desired pods. Apply must not be called concurrently; all other methods are safe for
// concurrent use. The pods that it returns are shared and must not be changed.
type Pods struct {
	clock    clock.PassiveClock
	expected []pod.Source
	fields   pod.GatedFields

	mu       sync.RWMutex
	bySource map[pod.Source]map[types.UID]desiredPod // has a key for each source that has sent a snapshot
	partial  map[pod.Source]bool                     // its last snapshot was partial
	byUID    map[types.UID]*v1.Pod
	byName   map[string]*v1.Pod
	round    int                // counts calls of Apply
	mirrors  map[string]*v1.Pod // by full name, which is the same for static pod and mirror
}

// desiredPod is one pod as its source sent it, and as other packages see it.
type desiredPod struct {
	original *v1.Pod
	// pod is original without disabled fields, with annotations for source and time.
	pod *v1.Pod
	// round is that of the last snapshot with this pod.
	round int
}

// New returns an empty set.
func New(cfg Config, deps Deps) (*Pods, error) {
	if err := require.Set("new desired pods", map[string]any{"Sources": cfg.Sources, "Clock": deps.Clock}); err != nil {
		return nil, err
	}
	return &Pods{
		clock:    deps.Clock,
		expected: cfg.Sources,
		fields:   cfg.Fields,
		bySource: map[pod.Source]map[types.UID]desiredPod{},
		partial:  map[pod.Source]bool{},
		byUID:    map[types.UID]*v1.Pod{},
		byName:   map[string]*v1.Pod{},
		mirrors:  map[string]*v1.Pod{},
	}, nil
}

// Ready reports whether every source has sent a complete snapshot. Until then a missing pod may just not have been
// read yet, so nothing may be cleaned up.
func (d *Pods) Ready() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ready()
}

func (d *Pods) ready() bool {
	for _, source := range d.expected {
		if _, seen := d.bySource[source]; !seen || d.partial[source] {
			return false
		}
	}
	return true
}

// Get returns a desired pod by its UID, a static pod by its own UID and not its mirror's.
func (d *Pods) Get(uid types.UID) (*v1.Pod, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.byUID[uid]
	return p, ok
}

// GetByFullName returns a desired pod by its pod.FullName.
func (d *Pods) GetByFullName(name string) (*v1.Pod, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.byName[name]
	return p, ok
}

// List returns all desired pods, in no order.
func (d *Pods) List() []*v1.Pod {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]*v1.Pod, 0, len(d.byUID))
	for _, p := range d.byUID {
		all = append(all, p)
	}
	return all
}

// MirrorOf returns the mirror of a static pod, nil if there is none.
func (d *Pods) MirrorOf(static *v1.Pod) *v1.Pod {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.mirrorOf(static)
}

func (d *Pods) mirrorOf(p *v1.Pod) *v1.Pod {
	if !pod.IsStatic(p) {
		return nil
	}
	return d.mirrors[pod.FullName(p)]
}

// Mirrors returns the number of mirrors in the API server.
func (d *Pods) Mirrors() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.mirrors)
}

// OrphanMirrors lists the mirrors without a static pod. There are none before Ready: the manifest of a
// mirror may not have been read yet.
func (d *Pods) OrphanMirrors() []*v1.Pod {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.ready() {
		return nil
	}
	var orphans []*v1.Pod
	for name, mirror := range d.mirrors {
		if p, ok := d.byName[name]; !ok || !pod.IsStatic(p) {
			orphans = append(orphans, mirror)
		}
	}
	return orphans
}
