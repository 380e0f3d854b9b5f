package simulate

import "time"

// killAgent kills the agent now, or stops it as systemd would.
func (w *workload) killAgent() {
	w.mu.Lock()
	current := w.current
	w.mu.Unlock()
	if current == nil {
		return
	}
	w.countFault()
	w.mu.Lock()
	w.kills++
	w.mu.Unlock()
	if often(w.r, 0.3) {
		w.add("world: stop agent")
		current.cancel()
		return
	}
	current.kill("by the world")
}

func (w *workload) restartRuntime() {
	w.countFault()
	w.add("world: runtime stops")
	w.runtime.Stop()
	time.Sleep(between(w.r, time.Millisecond, pick(w.r, time.Second, time.Minute)))
	if err := w.runtime.Restart(); err != nil {
		w.t.Error(err)
	}
	w.add("world: runtime is back")
}

// disturbEvents loses, delays or doubles events of the runtime.
func (w *workload) disturbEvents() {
	w.countFault()
	switch w.r.IntN(4) {
	case 0:
		w.add("world: event streams break")
		w.runtime.Events.Break()
	case 1:
		w.add("world: events are lost")
		w.runtime.Events.Drop(1 + w.r.IntN(20))
	case 2:
		w.add("world: events are doubled")
		w.runtime.Events.Repeat()
	case 3:
		w.add("world: events are held")
		w.runtime.Events.Hold()
		time.AfterFunc(between(w.r, time.Second, 2*time.Minute), w.runtime.Events.Release)
	}
}

// cutAPI makes the API server unreachable for some time.
func (w *workload) cutAPI() {
	w.countFault()
	w.add("world: API server is unreachable")
	w.setOutage(true)
	w.api.BreakWatches()
	time.Sleep(between(w.r, time.Second, 10*time.Minute))
	w.setOutage(false)
	w.add("world: API server is back")
}

func (w *workload) setOutage(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outage = on
}

// disturbWatches ends watches, with or without the history that they would continue at.
func (w *workload) disturbWatches() {
	w.countFault()
	if often(w.r, 0.5) {
		w.api.Compact()
	}
	w.add("world: watches break")
	w.api.BreakWatches()
}
