package csi

import (
	"context"
	"math"
	"time"
)

// updateTimeout bounds the delay of other drivers by one that hangs.
const updateTimeout = 15 * time.Second

// Run updates the volume limits in the CSINode, for drivers with a
// nodeAllocatableUpdatePeriodSeconds, until ctx is done. Without any it only waits.
func (p *Plugin) Run(ctx context.Context) error {
	if p.deps.Client == nil {
		<-ctx.Done()
		return nil
	}
	due := map[string]time.Time{}
	for ctx.Err() == nil {
		p.schedule(ctx, due)
		var expired <-chan time.Time
		name, at := nextDue(due)
		stop := func() {}
		if name != "" {
			timer := p.deps.Clock.NewTimer(at.Sub(p.deps.Clock.Now()))
			expired, stop = timer.C(), func() { timer.Stop() }
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-expired:
			p.updateAllocatable(ctx, name)
			delete(due, name) // schedule adds it again
		}
		stop()
	}
	return nil
}

// DriversChanged makes Run reread the drivers and their CSIDriver objects.
func (p *Plugin) DriversChanged() {
	p.wake.Notify()
}

// schedule adds drivers with an update period and removes those without.
func (p *Plugin) schedule(ctx context.Context, due map[string]time.Time) {
	p.mu.Lock()
	names := make(map[string]bool, len(p.drivers))
	for name := range p.drivers {
		names[name] = true
	}
	p.mu.Unlock()
	for name := range due {
		if !names[name] {
			delete(due, name)
		}
	}
	for name := range names {
		period := p.updatePeriod(ctx, name)
		next := p.deps.Clock.Now().Add(period)
		switch at, planned := due[name]; {
		case period == 0:
			delete(due, name)
		case !planned || next.Before(at): // new, or shorter than it was
			due[name] = next
		}
	}
}

// updatePeriod is 0 for a driver without periodic updates.
func (p *Plugin) updatePeriod(ctx context.Context, name string) time.Duration {
	known, err := p.driverObject(ctx, name)
	if err != nil || known == nil || known.Spec.NodeAllocatableUpdatePeriodSeconds == nil {
		return 0
	}
	return time.Duration(min(*known.Spec.NodeAllocatableUpdatePeriodSeconds, math.MaxInt64/int64(time.Second))) * time.Second
}

func (p *Plugin) updateAllocatable(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	p.mu.Lock()
	d, ok := p.drivers[name]
	p.mu.Unlock()
	if !ok {
		return
	}
	info, err := p.nodeInfo(ctx, name, d.endpoint)
	if err == nil {
		err = p.updateCSINodeDriver(ctx, name, info)
	}
	if err != nil && ctx.Err() == nil {
		p.deps.Log.Warn("csi: failed to update volume limit", "driver", name, "err", err)
	}
}

// nextDue is the driver that is due next, "" for none.
func nextDue(due map[string]time.Time) (name string, at time.Time) {
	for n, t := range due {
		if name == "" || t.Before(at) {
			name, at = n, t
		}
	}
	return name, at
}
