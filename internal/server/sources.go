package server

import (
	"sync"

	timerate "golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
)

// sources remembers what each source has used of its limits, and which sources are known: an
// authorized request came from there.
type sources struct {
	clock  clock.PassiveClock
	limits limits

	mu      sync.Mutex // guards the creation of budgets
	budgets *cache.LRUExpireCache
	known   *cache.LRUExpireCache
}

// budget is what one source may use. A known source has more connections.
type budget struct{ connections, knownConnections, reviews *timerate.Limiter }

func newSources(clock clock.PassiveClock, l limits) *sources {
	return &sources{clock: clock, limits: l,
		budgets: cache.NewLRUExpireCacheWithClock(maxSources, clock),
		known:   cache.NewLRUExpireCacheWithClock(maxSources, clock),
	}
}

// allowConnection reports whether the source may open another connection now.
func (s *sources) allowConnection(from source) bool {
	b := s.budget(from)
	if s.isKnown(from) {
		return b.knownConnections.AllowN(s.clock.Now(), 1)
	}
	return b.connections.AllowN(s.clock.Now(), 1)
}

// allowReview reports whether the API server may be asked about another token of the source now.
func (s *sources) allowReview(from source) bool {
	return s.budget(from).reviews.AllowN(s.clock.Now(), 1)
}

func (s *sources) budget(from source) *budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.budgets.Get(from); ok {
		return found.(*budget)
	}
	b := &budget{connections: s.limits.connectionRate.limiter(), reviews: s.limits.sourceReviewRate.limiter(),
		knownConnections: rate{knownFactor * s.limits.connectionRate.perSecond, knownFactor * s.limits.connectionRate.burst}.limiter()}
	s.budgets.Add(from, b, budgetTTL)
	return b
}

func (s *sources) setKnown(from source) { s.known.Add(from, true, knownFor) }

func (s *sources) isKnown(from source) bool {
	_, ok := s.known.Get(from)
	return ok
}

// factor multiplies the limits of a source.
func (s *sources) factor(from source) int {
	if s.isKnown(from) {
		return knownFactor
	}
	return 1
}

func (r rate) limiter() *timerate.Limiter {
	return timerate.NewLimiter(timerate.Limit(r.perSecond), r.burst)
}
