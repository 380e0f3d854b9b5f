package csi

import (
	"context"
	"time"
)

// updateTimeout bounds what one driver that hangs costs the others here.
const updateTimeout = 15 * time.Second

// Run keeps the CSINode in step with how many volumes the node can take, for drivers that
// ask for it (nodeAllocatableUpdatePeriodSeconds), until ctx is done. Without any it rests.
func (p *Plugin) Run(ctx context.Context) error {
	if p.deps.Client == nil {
		<-ctx.Done()
		return nil
	}
	due := map[string]time.Time{}
	for ctx.Err() == nil {
		p.plan(ctx, due)
		var expired <-chan time.Time
		name, at := first(due)
		stop := func() {}
		if name != "" {
			timer := p.deps.Clock.NewTimer(at.Sub(p.deps.Clock.Now()))
			expired, stop = timer.C(), func() { timer.Stop() }
		}
		select {
		case <-ctx.Done():
		case <-p.look:
		case <-expired:
			p.update(ctx, name)
			delete(due, name) // planned anew
		}
		stop()
	}
	return nil
}

// Look has Run see that drivers, or what the cluster says of them, have changed.
func (p *Plugin) Look() {
	p.look.Notify()
}

// plan adds drivers that ask to be asked, and drops those that do not any more.
func (p *Plugin) plan(ctx context.Context, due map[string]time.Time) {
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

// updatePeriod is 0 for a driver that does not ask for updates.
func (p *Plugin) updatePeriod(ctx context.Context, name string) time.Duration {
	known, err := p.described(ctx, name)
	if err != nil || known == nil || known.Spec.NodeAllocatableUpdatePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*known.Spec.NodeAllocatableUpdatePeriodSeconds) * time.Second
}

func (p *Plugin) update(ctx context.Context, name string) {
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
		err = p.enlist(ctx, name, info)
	}
	if err != nil && ctx.Err() == nil {
		p.deps.Log.Warn("how many volumes a CSI driver can take is not known", "driver", name, "err", err)
	}
}

// first is the driver that is due next, "" for none.
func first(due map[string]time.Time) (name string, at time.Time) {
	for n, t := range due {
		if name == "" || t.Before(at) {
			name, at = n, t
		}
	}
	return name, at
}
