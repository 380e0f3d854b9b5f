package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// dice makes decisions that depend on the seed and on what they are for, not on the order in which
// goroutines ask.
type dice struct {
	seed uint64
	mu   sync.Mutex
	seen map[string]int
}

func newDice(seed uint64) *dice { return &dice{seed: seed, seen: map[string]int{}} }

// roll returns the random numbers of the next decision of that name.
func (d *dice) roll(name string) *rand.Rand {
	d.mu.Lock()
	n := d.seen[name]
	d.seen[name]++
	d.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "#" + strconv.Itoa(n)))
	return rand.New(rand.NewPCG(d.seed, h.Sum64()))
}

// between returns a random duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// often is true with a probability of p.
func often(r *rand.Rand, p float64) bool { return r.Float64() < p }
