package path

import (
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// countingClock is synctest's time and counts the timers that fire: each wakes the agent up. The agent's
// packages use no other timers.
type countingClock struct {
	clock.RealClock
	fired atomic.Int64
}

func (c *countingClock) NewTimer(d time.Duration) clock.Timer {
	t := &countingTimer{c: make(chan time.Time, 1)}
	t.timer = time.AfterFunc(d, func() {
		c.fired.Add(1)
		t.c <- time.Now()
	})
	return t
}

func (c *countingClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

func (c *countingClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return &countingTimer{timer: time.AfterFunc(d, func() {
		c.fired.Add(1)
		f()
	})}
}

func (c *countingClock) Sleep(d time.Duration) { <-c.After(d) }

func (c *countingClock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

func (c *countingClock) NewTicker(d time.Duration) clock.Ticker {
	t := &countingTicker{c: make(chan time.Time, 1)}
	// Reset starts it when t.timer is set, which the function uses.
	t.timer = time.AfterFunc(time.Hour, func() {
		c.fired.Add(1)
		select {
		case t.c <- time.Now():
		default: // the last tick was not read
		}
		t.timer.Reset(d)
	})
	t.timer.Reset(d)
	return t
}

// countingTimer behaves like a time.Timer: no value is received after Stop or Reset.
type countingTimer struct {
	timer *time.Timer
	c     chan time.Time
}

func (t *countingTimer) C() <-chan time.Time { return t.c }

func (t *countingTimer) Stop() bool { return t.drain(t.timer.Stop()) }

func (t *countingTimer) Reset(d time.Duration) bool {
	active := t.Stop()
	t.timer.Reset(d)
	return active
}

// drain removes a value that was not received. The timer counts as active then.
func (t *countingTimer) drain(active bool) bool {
	select {
	case <-t.c:
		return true
	default:
		return active
	}
}

type countingTicker struct {
	timer *time.Timer
	c     chan time.Time
}

func (t *countingTicker) C() <-chan time.Time { return t.c }
func (t *countingTicker) Stop()               { t.timer.Stop() }
