package stats

import (
	"maps"
	"sync"
	"time"
)

const (
	// minSampleAge is the shortest time over which a rate is computed: less would show the
	// scheduler's time slices rather than usage.
	minSampleAge = time.Second
	// maxSampleAge is the age at which a sample is replaced by the next.
	maxSampleAge = 10 * time.Second
)

// rates computes CPU usage from CPU totals. It keeps one sample of each cgroup.
type rates struct {
	mu   *sync.Mutex
	last map[string]sample
}

// sample is the CPU total of a cgroup at some time, and the rate last computed for it.
type sample struct {
	at        time.Time
	total     uint64
	nanoCores uint64
	// created is the earliest creation time seen. The kernel may report a later one after it
	// has dropped the directory from its cache.
	created time.Time
}

func newRates() rates { return rates{mu: new(sync.Mutex), last: map[string]sample{}} }

// update computes the rate of every cgroup of a reading, and drops the cgroups that are not in
// it. The rate of a cgroup without a sample is that over its lifetime.
func (r *rates) update(all []*usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]bool, len(all))
	for _, u := range all {
		seen[u.path] = true
		r.updateOne(u)
	}
	maps.DeleteFunc(r.last, func(path string, _ sample) bool { return !seen[path] })
}

func (r *rates) updateOne(u *usage) {
	old, known := r.last[u.path]
	if !known || u.cpu.total < old.total || u.at.Before(old.at) {
		u.nanoCores = perSecond(u.cpu.total, u.at.Sub(u.created))
		r.last[u.path] = sample{u.at, u.cpu.total, u.nanoCores, u.created}
		return
	}
	if old.created.Before(u.created) {
		u.created = old.created
	}
	age := u.at.Sub(old.at)
	if age >= minSampleAge {
		old.nanoCores = perSecond(u.cpu.total-old.total, age)
	}
	u.nanoCores = old.nanoCores
	if age >= maxSampleAge {
		old.at, old.total = u.at, u.cpu.total
	}
	r.last[u.path] = old
}

func perSecond(amount uint64, over time.Duration) uint64 {
	if over < minSampleAge/10 { // too short for a rate
		return 0
	}
	return uint64(float64(amount) / over.Seconds())
}
