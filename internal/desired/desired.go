package desired

import (
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// Config says which sources there are.
type Config struct {
	// Sources must each have sent a snapshot before Ready.
	Sources []pod.Source
	// Fields drops the fields of pods whose feature gates are off.
	Fields pod.GatedFields
}

// Deps are what Pods needs from outside.
type Deps struct {
	Clock clock.PassiveClock
}

// Pods is the set of wanted pods. Apply has one caller; everything else may be called from
// anywhere. The pods it hands out are shared and must not be changed.
type Pods struct {
	clock    clock.PassiveClock
	expected []pod.Source
	fields   pod.GatedFields

	mu       sync.RWMutex
	bySource map[pod.Source]map[types.UID]wanted // a key per source that has been seen
	byUID    map[types.UID]*v1.Pod
	byName   map[string]*v1.Pod
	mirrors  map[string]*v1.Pod // by full name, which static pod and mirror share
}

// wanted is one pod as its source gave it and as the agent sees it.
type wanted struct {
	given *v1.Pod
	pod   *v1.Pod // given, as the node reads it, with where and when it was seen as annotations
}

// New makes an empty set.
func New(cfg Config, deps Deps) (*Pods, error) {
	if len(cfg.Sources) == 0 {
		return nil, errors.New("desired: no sources")
	}
	if deps.Clock == nil {
		return nil, errors.New("desired: no clock")
	}
	return &Pods{
		clock:    deps.Clock,
		expected: cfg.Sources,
		fields:   cfg.Fields,
		bySource: map[pod.Source]map[types.UID]wanted{},
		byUID:    map[types.UID]*v1.Pod{},
		byName:   map[string]*v1.Pod{},
		mirrors:  map[string]*v1.Pod{},
	}, nil
}

// Ready reports whether every source has been heard. Until then a pod that is missing here
// may merely not have been read yet, so nothing may be cleaned up.
func (d *Pods) Ready() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.ready()
}

func (d *Pods) ready() bool {
	for _, source := range d.expected {
		if _, seen := d.bySource[source]; !seen {
			return false
		}
	}
	return true
}

// Get finds a wanted pod by its UID; a static pod is known by its own, not its mirror's.
func (d *Pods) Get(uid types.UID) (*v1.Pod, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.byUID[uid]
	return p, ok
}

// GetByFullName finds a wanted pod by name and namespace (pod.FullName).
func (d *Pods) GetByFullName(name string) (*v1.Pod, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	p, ok := d.byName[name]
	return p, ok
}

// List returns all wanted pods, in no order.
func (d *Pods) List() []*v1.Pod {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]*v1.Pod, 0, len(d.byUID))
	for _, p := range d.byUID {
		all = append(all, p)
	}
	return all
}

// MirrorOf returns the API server's image of a static pod, nil where there is none (yet).
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

// Mirrors is how many images of static pods the API server has.
func (d *Pods) Mirrors() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.mirrors)
}

// OrphanMirrors lists the mirrors whose static pod nobody wants. There are none before
// Ready: the file that explains a mirror may not have been read yet.
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
