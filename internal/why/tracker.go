package why

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/clip"
	"swiftlet/internal/pod"
)

// Limits of what a pod's steps take in memory.
const (
	// maxSettled is the number of steps that are kept of a pod that is up. Successful steps beyond it are
	// only counted.
	maxSettled = 32
	// maxSteps is the number of steps that are kept of any pod.
	maxSteps = 512
	// maxText limits the text of an error, maxSettledText that of one that no longer matters.
	maxText, maxSettledText = 512, 80
	// maxSettledFaults is the number of errors that are kept of a pod that is up.
	maxSettledFaults = 4
)

// Stage is where the pod is in its life.
type Stage uint8

const (
	Starting Stage = iota // or running
	Stopping
	Finishing
	Ended
	Removing
)

var stageNames = [...]string{"starting", "stopping", "finishing", "ended", "removing"}

func (s Stage) String() string { return stageNames[s] }

// Tracker has the steps of all pods. It starts nothing, and its methods only set fields. All of them may be called
// for any pod and on a nil Tracker, and do nothing for a pod that is not tracked.
type Tracker struct {
	mu   sync.Mutex
	pods map[types.UID]*record
	// start is before the first pod was tracked. All other times are kept as nanoseconds since then, on the monotonic
	// clock; zero is never.
	start time.Time
}

// New returns an empty Tracker.
func New() *Tracker { return &Tracker{pods: map[types.UID]*record{}} }

// record is what is known of one pod.
type record struct {
	pod     *v1.Pod
	failure *pod.Failure
	stage   Stage
	settled bool
	since   int64 // begin of the stage
	next    int64 // next step of the pod's worker
	omitted int   // steps that are not kept
	steps   []entry
}

// entry is one step.
type entry struct {
	Step
	since  int64 // begin of the first attempt since the last success
	began  int64 // begin of the last attempt
	ended  int64 // end of the last attempt; zero while it runs
	next   int64
	bytes  int64
	tries  uint32
	failed bool
	queued bool
	fault  *fault
}

// fault is the last error of a step.
type fault struct {
	class        Class
	object, text string
	clock        int64 // of the wall clock at the attempt's begin, in nanoseconds since 1970, to compare with the runtime's
}

// Await begins to record the steps of a pod whose first step waits for the end of other pods.
func (t *Tracker) Await(p *v1.Pod, now time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := entry{Step: Step{Kind: Admission}}
	e.begin(t.offset(now))
	t.pods[p.UID] = &record{pod: p, since: e.since, steps: []entry{e}}
}

// Track begins or continues to record the steps of a pod, as of its latest version and failure.
func (t *Tracker) Track(p *v1.Pod, stage Stage, failure *pod.Failure, now time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.pods[p.UID]
	if r == nil {
		e := entry{Step: Step{Kind: Admission}}
		e.begin(t.offset(now))
		e.ended, e.failed = e.began, failure != nil
		r = &record{since: e.since, steps: []entry{e}}
		t.pods[p.UID] = r
	}
	if first := &r.steps[0]; first.Kind == Admission && first.ended == 0 {
		first.ended = t.offset(now)
	}
	if r.stage != stage {
		r.stage, r.since, r.settled = stage, t.offset(now), false
	}
	r.pod, r.failure, r.next = p, failure, 0
}

// Forget drops the steps of a pod.
func (t *Tracker) Forget(uid types.UID) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, uid)
}

// Begin records that a step has begun.
func (t *Tracker) Begin(uid types.UID, s Step, now time.Time) {
	t.change(uid, func(r *record) {
		if e := r.entry(s); e != nil {
			e.begin(t.offset(now))
		}
	})
}

// End records that a step has ended. next is the time of the next attempt, zero if it is not known. A step that
// has not begun has begun just now.
func (t *Tracker) End(uid types.UID, s Step, err error, now, next time.Time) {
	t.change(uid, func(r *record) {
		e := r.entry(s)
		if e == nil {
			return
		}
		if e.ended != 0 || e.began == 0 {
			e.begin(t.offset(now))
		}
		e.ended, e.next, e.failed, e.queued = t.offset(now), t.offset(next), err != nil, false
		if err != nil {
			class, object := Of(err)
			e.fault = &fault{class, clip.Text(object, maxText), clip.Text(textOf(err), maxText), now.UnixNano() - (e.ended - e.began)}
			r.settled = false
		}
	})
}

// Delay records when a step that has failed is tried again.
func (t *Tracker) Delay(uid types.UID, s Step, next time.Time) {
	t.change(uid, func(r *record) {
		if e := r.find(s); e != nil && e.failed {
			e.next = t.offset(next)
		}
	})
}

// Postpone takes back the last attempt of a step, which was not made because of its back-off.
func (t *Tracker) Postpone(uid types.UID, s Step, next time.Time) {
	t.change(uid, func(r *record) {
		e := r.find(s)
		if e == nil || e.tries == 0 {
			return
		}
		e.ended, e.next, e.failed = e.began, t.offset(next), true
		if e.tries--; e.tries == 0 { // an earlier agent has made them
			e.tries = 1
		}
	})
}

// Passed records the success of a step whose failure was recorded, if it was.
func (t *Tracker) Passed(uid types.UID, s Step, now time.Time) {
	t.change(uid, func(r *record) {
		if e := r.find(s); e != nil && (e.failed || e.ended == 0) {
			e.failed, e.ended, e.next = false, t.offset(now), 0
		}
	})
}

// Queue records that a step that runs waits for those of other pods, or does so no longer.
func (t *Tracker) Queue(uid types.UID, s Step, waits bool) {
	t.change(uid, func(r *record) {
		if e := r.find(s); e != nil {
			e.queued = waits
		}
	})
}

// Bytes records how much a step has read.
func (t *Tracker) Bytes(uid types.UID, s Step, n uint64) {
	t.change(uid, func(r *record) {
		if e := r.find(s); e != nil {
			e.bytes = int64(min(n, 1<<62))
		}
	})
}

// NextTry records when the pod's worker runs again.
func (t *Tracker) NextTry(uid types.UID, at time.Time) {
	t.change(uid, func(r *record) { r.next = t.offset(at) })
}

// Settled records that nothing is left to do for the pod. Its steps are then reduced to what a pod that is up may
// take in memory.
func (t *Tracker) Settled(uid types.UID) {
	t.change(uid, func(r *record) {
		if !r.settled {
			r.settle()
		}
	})
}

func (t *Tracker) change(uid types.UID, f func(*record)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.pods[uid]; r != nil {
		f(r)
	}
}

func (r *record) find(s Step) *entry {
	for i := range r.steps {
		if r.steps[i].Step == s {
			return &r.steps[i]
		}
	}
	return nil
}

// entry returns the entry of a step, nil if there are too many.
func (r *record) entry(s Step) *entry {
	if e := r.find(s); e != nil {
		return e
	}
	if len(r.steps) >= maxSteps {
		r.omitted++
		return nil
	}
	r.steps, r.settled = append(r.steps, entry{Step: s}), false
	return &r.steps[len(r.steps)-1]
}

func (e *entry) begin(at int64) {
	if !e.failed {
		e.since, e.tries, e.fault, e.bytes = at, 0, nil, 0
	}
	e.began, e.ended, e.next, e.queued = at, 0, 0, false
	e.tries++
}

// settle reduces the steps, in new memory, as that of the old ones may be twice as large.
func (r *record) settle() {
	r.settled = true
	kept, faults := make([]entry, 0, min(len(r.steps), maxSettled)), 0
	for _, e := range r.steps {
		done := !e.failed && e.ended != 0
		if len(kept) == maxSettled || e.Kind.ends() && done {
			r.omitted++
			continue
		}
		if e.fault != nil && done {
			if faults++; faults > maxSettledFaults {
				e.fault = nil
			} else {
				e.fault = &fault{e.fault.class, clip.Text(e.fault.object, maxSettledText), clip.Text(e.fault.text, maxSettledText), e.fault.clock}
			}
		}
		kept = append(kept, e)
	}
	r.steps = slices.Clip(kept)
}

// offset is a time as it is kept. It is called with the lock held.
func (t *Tracker) offset(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	if t.start.IsZero() {
		t.start = at.Add(-time.Hour)
	}
	return int64(at.Sub(t.start))
}

// timeline is a time on both clocks.
type timeline struct {
	now    time.Time
	offset int64
}

// at is a time that was kept, by the wall clock as it is set now.
func (l timeline) at(offset int64) time.Time {
	if offset == 0 {
		return time.Time{}
	}
	return l.now.Add(time.Duration(offset - l.offset)).UTC()
}
