package server

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/instant"
	"swiftlet/internal/notify"
	"swiftlet/internal/pod"
	"swiftlet/internal/why"
)

const (
	// notePatience is how long a step may take before a note says that the pod waits for it.
	notePatience = 3 * time.Second
	// noteInterval is how often notes are made while a pod is not up: not all steps change its status.
	noteInterval = 3 * time.Second
)

// Board reports the status of each pod, as it changes, to a program that shows it to people.
type Board struct {
	cfg     BoardConfig
	changed notify.Signal
}

// BoardConfig has what a Board needs; all of it is required.
type BoardConfig struct {
	View *PodView
	Why  Why
	// Show is called with each pod after a change of any. note says why the pod is not up; it is empty for a pod
	// that is up, or starts without trouble.
	Show func(p *v1.Pod, note string)
	// Forget is called for each pod that is gone.
	Forget func(types.UID)
	Clock  clock.Clock
}

// NewBoard starts nothing.
func NewBoard(cfg BoardConfig) *Board {
	b := &Board{cfg: cfg, changed: notify.New()}
	cfg.View.deps.Statuses.Subscribe(b.changed.Notify)
	return b
}

// Run reports until ctx is done.
func (b *Board) Run(ctx context.Context) error {
	shown, waits := map[types.UID]bool{}, map[types.UID]wait{}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		case <-again:
		}
		again = nil
		present := map[types.UID]bool{}
		for _, p := range b.cfg.View.Pods().Items {
			if _, derived := b.cfg.View.deps.Statuses.Get(p.UID); !derived {
				continue // its worker has not begun, or is done with it
			}
			present[p.UID] = true
			note, settled := b.note(&p, waits)
			if !settled && again == nil {
				again = b.cfg.Clock.After(noteInterval)
			}
			b.cfg.Show(&p, note)
		}
		for uid := range shown {
			if !present[uid] {
				delete(waits, uid)
				b.cfg.Forget(uid)
			}
		}
		shown = present
	}
}

// wait is since when a pod waits: as its report says, and on the monotonic clock. The times of a pod's status do not
// follow the wall clock when it is set.
type wait struct{ reported, since time.Time }

// note says why the pod is not up. settled: it does not change unless the pod's status does.
func (b *Board) note(p *v1.Pod, waits map[types.UID]wait) (text string, settled bool) {
	if p.Status.Phase == v1.PodSucceeded && p.DeletionTimestamp == nil {
		return "", true
	}
	r, found := b.cfg.Why.Pod(p.Namespace, p.Name)
	if !found || r.UID != p.UID || r.Cause.Up {
		return "", true
	}
	now := b.cfg.Clock.Now()
	if known := waits[p.UID]; !known.reported.Equal(r.Cause.Since) {
		waits[p.UID] = wait{r.Cause.Since, instant.Of(r.Cause.Since, now)}
	}
	if isOnItsWay(r, now.Sub(waits[p.UID].since)) {
		return "", false
	}
	return r.Cause.Note(), pod.IsTerminal(p.Status.Phase) && p.DeletionTimestamp == nil
}

// isOnItsWay reports whether nothing has failed and nothing takes long. The text of a pod that is being stopped names
// its processes.
func isOnItsWay(r why.Report, waited time.Duration) bool {
	c := r.Cause
	return (c.Text == "" || len(r.Processes) > 0) && c.Class == why.Unclassified && c.Attempts < 2 && waited < notePatience
}
