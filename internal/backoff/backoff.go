// Package backoff computes the delays between retries.
//
// k8s.io/apimachinery's wait.Backoff is similar, but takes its jitter from a global source, which
// a test cannot replace, and does not grow without a number of steps.
package backoff

import "time"

// Backoff is a delay that doubles with each failure, from First up to Longest. Copies are
// independent. It is not safe for concurrent use.
type Backoff struct {
	First   time.Duration
	Longest time.Duration
	// Spread is the maximum jitter as a fraction of the delay, so that callers that failed
	// together do not retry together. Random returns a number in [0, 1); without it there is no
	// jitter.
	Spread float64
	Random func() float64

	next time.Duration // zero means First
}

// Next returns the delay after one more failure. A change of Longest takes effect with the
// following call.
func (b *Backoff) Next() time.Duration {
	delay := b.next
	if delay == 0 {
		delay = min(b.First, b.Longest)
	}
	b.next = min(2*delay, b.Longest)
	return b.spread(delay)
}

// Reset makes the next delay First.
func (b *Backoff) Reset() { b.next = 0 }

// After returns the delay after that many failures in a row, for a caller that counts them. It
// is independent of Next.
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
