package stats

import (
	"maps"
	"sync"
	"time"
)

const (
	// shortest is the least time between two samples that a rate is made of: less would
	// show the scheduler's steps rather than usage.
	shortest = time.Second
	// renewal is the age at which a sample gives way to the next.
	renewal = 10 * time.Second
)

// rates turns CPU totals into usage per second. It keeps one sample of each group.
type rates struct {
	mu   *sync.Mutex
	last map[string]sample
}

// sample is a group's total at some time, and the rate that was last derived for it.
type sample struct {
	at    time.Time
	total uint64
	cores uint64
	// created is the earliest that was told; the kernel may tell a later one once it has
	// forgotten the directory meanwhile.
	created time.Time
}

func newRates() rates { return rates{mu: new(sync.Mutex), last: map[string]sample{}} }

// update derives the rate of every group of a reading, and forgets the groups that are not
// in it. Of a group that is seen for the first time all that is known is its whole life.
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
		u.cores = perSecond(u.cpu.total, u.at.Sub(u.created))
		r.last[u.path] = sample{u.at, u.cpu.total, u.cores, u.created}
		return
	}
	if old.created.Before(u.created) {
		u.created = old.created
	}
	age := u.at.Sub(old.at)
	if age >= shortest {
		old.cores = perSecond(u.cpu.total-old.total, age)
	}
	u.cores = old.cores
	if age >= renewal {
		old.at, old.total = u.at, u.cpu.total
	}
	r.last[u.path] = old
}

func perSecond(amount uint64, over time.Duration) uint64 {
	if over < shortest/10 { // too young to tell
		return 0
	}
	return uint64(float64(amount) / over.Seconds())
}
