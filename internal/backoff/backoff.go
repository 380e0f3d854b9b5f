// Package backoff computes the delays between attempts at something that fails.
//
// k8s.io/apimachinery's wait.Backoff does much the same, but draws its jitter from a
// global source, which a test cannot replace, and does not double without a count of
// steps.
package backoff

import "time"

// Backoff is a delay that doubles with each failure, from First up to Longest. Its copy is
// independent of it. It is not safe for concurrent use.
type Backoff struct {
	First   time.Duration
	Longest time.Duration
	// Spread is the largest part of a delay that is added to it at random, so that those
	// that failed together do not all try again together. Random returns a number in [0, 1);
	// without it nothing is added.
	Spread float64
	Random func() float64

	next time.Duration // zero is First
}

// Next returns the delay after one more failure. A change of Longest takes effect with the
// failure after that.
func (b *Backoff) Next() time.Duration {
	delay := b.next
	if delay == 0 {
		delay = min(b.First, b.Longest)
	}
	b.next = min(2*delay, b.Longest)
	return b.spread(delay)
}

// Reset starts again with First.
func (b *Backoff) Reset() { b.next = 0 }

// After returns the delay after so many failures in a row, for a caller that counts them.
// It ignores and leaves alone what Next has counted.
func (b Backoff) After(failures int) time.Duration {
	delay := min(b.First, b.Longest)
	for ; failures > 1 && delay < b.Longest; failures-- {
		delay = min(2*delay, b.Longest)
	}
	return b.spread(delay)
}

func (b Backoff) spread(delay time.Duration) time.Duration {
	if b.Random == nil {
		return delay
	}
	return delay + time.Duration(b.Random()*b.Spread*float64(delay))
}
