package standalone

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
)

// settleTime lets a burst of changes become one redraw.
const settleTime = 50 * time.Millisecond

// Board shows the pods: as a table that is redrawn when it changes on a terminal, as one
// line per change elsewhere. Its methods never block on the output, so the agent may call
// them from wherever a status changes.
type Board struct {
	out   io.Writer
	rows  func() int // nil: not a terminal
	clock clock.Clock
	cfg   Config
	dirty notify.Signal

	mu   sync.Mutex
	pods map[types.UID]*v1.Pod

	// Of run alone: what stands on the screen.
	drawn string
	lines map[types.UID]string
	hints bool
}

func newBoard(out io.Writer, rows func() int, clock clock.Clock, cfg Config) *Board {
	return &Board{
		out: out, rows: rows, clock: clock, cfg: cfg,
		dirty: notify.New(),
		pods:  map[types.UID]*v1.Pod{}, lines: map[types.UID]string{},
	}
}

// Show puts the pod, with its status, on the board. The board does not change it, and it
// must not be changed afterwards.
func (b *Board) Show(p *v1.Pod) {
	b.mu.Lock()
	b.pods[p.UID] = p
	b.mu.Unlock()
	b.dirty.Notify()
}

// Forget takes a pod that is gone off the board.
func (b *Board) Forget(uid types.UID) {
	b.mu.Lock()
	delete(b.pods, uid)
	b.mu.Unlock()
	b.dirty.Notify()
}

// run draws until ctx is done, and once more then.
func (b *Board) run(ctx context.Context) {
	for {
		next := b.draw()
		var tick <-chan time.Time
		if b.rows != nil && next > 0 {
			tick = b.clock.After(next)
		}
		select {
		case <-ctx.Done():
			b.draw()
			return
		case <-tick:
			continue
		case <-b.dirty:
		}
		select {
		case <-ctx.Done():
		case <-b.clock.After(settleTime):
		}
	}
}

// draw writes what changed and says after which time an age on the screen will be wrong.
func (b *Board) draw() (next time.Duration) {
	now, pods := b.clock.Now(), b.sorted()
	if b.rows == nil {
		b.drawLines(now, pods)
		return 0
	}
	text := cut(table(pods, now), b.rows())
	if advice := hints(b.cfg, pods); advice != "" && !b.hints {
		// Said once, above the table: its lines are long, and a terminal that wraps them
		// would not be where a redraw thinks it is.
		b.hints = true
		fmt.Fprint(b.out, redraw(b.drawn, "")+advice+"\n")
		b.drawn = ""
	}
	if text != b.drawn {
		fmt.Fprint(b.out, redraw(b.drawn, text))
		b.drawn = text
	}
	for _, p := range pods {
		until := time.Minute
		if now.Sub(startOf(p)) < time.Minute {
			until = time.Second
		}
		next = cmp.Or(min(next, until), until)
	}
	return next
}

func (b *Board) drawLines(now time.Time, pods []*v1.Pod) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		seen[p.UID] = true
		if l := line(p); l != b.lines[p.UID] {
			b.lines[p.UID] = l
			fmt.Fprintf(b.out, "%s %s\n", now.Format(time.TimeOnly), l)
		}
	}
	for uid, l := range b.lines {
		if !seen[uid] {
			delete(b.lines, uid)
			fmt.Fprintf(b.out, "%s gone: %s\n", now.Format(time.TimeOnly), l)
		}
	}
	if text := hints(b.cfg, pods); text != "" && !b.hints {
		b.hints = true
		fmt.Fprint(b.out, text)
	}
}

func (b *Board) sorted() []*v1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(b.pods))
	for _, p := range b.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods
}
