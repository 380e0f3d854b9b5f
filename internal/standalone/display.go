package standalone

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"swiftlet/internal/notify"
)

// redrawDelay combines a burst of changes into one redraw.
const redrawDelay = 50 * time.Millisecond

// Display shows the pods: on a terminal as a table that it redraws on changes, elsewhere as one
// line per change. Show and Forget do not wait for the output, so the agent may call them from
// any goroutine.
type Display struct {
	out   io.Writer
	rows  func() int // nil: not a terminal
	clock clock.Clock
	cfg   Config
	dirty notify.Signal
	pulls *pulls

	mu       sync.Mutex
	pods     map[types.UID]shownPod
	problems []Problem

	// Used only by run: what it has written.
	drawn          string
	lines, notes   map[types.UID]string
	problemLines   []string
	nextStepsShown bool
}

// shownPod is a pod, with a note if it is not up.
type shownPod struct {
	*v1.Pod
	note string
}

func newDisplay(out io.Writer, rows func() int, clock clock.Clock, cfg Config) *Display {
	return &Display{
		out: out, rows: rows, clock: clock, cfg: cfg,
		dirty: notify.New(), pulls: newPulls(cfg.Paths),
		pods: map[types.UID]shownPod{}, lines: map[types.UID]string{}, notes: map[types.UID]string{},
	}
}

// Show adds or updates the pod and its status; note says why it is not up. Neither Display nor the caller may
// change the pod afterwards.
func (d *Display) Show(p *v1.Pod, note string) {
	d.mu.Lock()
	d.pods[p.UID] = shownPod{p, note}
	d.mu.Unlock()
	d.dirty.Notify()
}

// Forget removes a deleted pod.
func (d *Display) Forget(uid types.UID) {
	d.mu.Lock()
	delete(d.pods, uid)
	d.mu.Unlock()
	d.dirty.Notify()
}

// ShowProblems replaces the problems with manifests.
func (d *Display) ShowProblems(all []Problem) {
	d.mu.Lock()
	d.problems = all
	d.mu.Unlock()
	d.dirty.Notify()
}

// problemTexts returns a line for each problem, without its end.
func (d *Display) problemTexts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var texts []string
	for _, p := range d.problems {
		texts = append(texts, p.String())
	}
	return texts
}

// run draws until ctx is done, and then one last time.
func (d *Display) run(ctx context.Context) {
	for {
		next := d.draw()
		var tick <-chan time.Time
		if d.rows != nil && next > 0 {
			tick = d.clock.After(next)
		}
		select {
		case <-ctx.Done():
			d.draw()
			return
		case <-tick:
			continue
		case <-d.dirty:
		}
		select {
		case <-ctx.Done():
		case <-d.clock.After(redrawDelay):
		}
	}
}

// draw writes the changes and returns after which time the next age on the screen changes.
func (d *Display) draw() (next time.Duration) {
	now, pods := d.clock.Now(), d.sorted()
	if d.rows == nil {
		d.drawLines(now, pods)
		return 0
	}
	text := table(pods, now, d.cfg.Colours)
	for _, line := range d.problemTexts() {
		text += notePrefix + "not applied: " + line + "\n"
	}
	if anyPending(pods) {
		if progress, running := d.pulls.read(now); running {
			text += notePrefix + progress.String() + "\n"
			next = time.Second
		}
	}
	text = truncateRows(text, d.rows())
	if advice := nextSteps(d.cfg, pods); advice != "" && !d.nextStepsShown {
		// Written once, above the table: a terminal wraps these long lines, so that a redraw
		// could not find its first row.
		d.nextStepsShown = true
		fmt.Fprint(d.out, redraw(d.drawn, "")+advice+"\n")
		d.drawn = ""
	}
	if text != d.drawn {
		fmt.Fprint(d.out, redraw(d.drawn, text))
		d.drawn = text
	}
	for _, p := range pods {
		until := time.Minute
		if now.Sub(startOf(p.Pod)) < time.Minute {
			until = time.Second
		}
		next = cmp.Or(min(next, until), until)
	}
	return next
}

// anyPending reports whether a pod may wait for an image.
func anyPending(pods []shownPod) bool {
	return slices.ContainsFunc(pods, func(p shownPod) bool {
		return p.Status.Phase == v1.PodPending || p.Status.Phase == ""
	})
}

func (d *Display) drawLines(now time.Time, pods []shownPod) {
	d.drawPodLines(now, pods)
	problems := d.problemTexts()
	for _, line := range problems {
		if !slices.Contains(d.problemLines, line) {
			fmt.Fprintf(d.out, "%s not applied: %s\n", now.Format(time.TimeOnly), line)
		}
	}
	for _, line := range d.problemLines {
		if !slices.Contains(problems, line) {
			fmt.Fprintf(d.out, "%s solved: %s\n", now.Format(time.TimeOnly), line)
		}
	}
	d.problemLines = problems
	if text := nextSteps(d.cfg, pods); text != "" && !d.nextStepsShown {
		d.nextStepsShown = true
		fmt.Fprint(d.out, text)
	}
}

// drawPodLines writes a line for each change of a pod, and one for each new note.
func (d *Display) drawPodLines(now time.Time, pods []shownPod) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		seen[p.UID] = true
		if l := statusLine(p.Pod); l != d.lines[p.UID] {
			d.lines[p.UID] = l
			status := podStatusText(p.Pod)
			if d.cfg.Colours {
				l = strings.Replace(l, " "+status+" ", " "+colourOf(p.Pod).paint(status)+" ", 1)
			}
			fmt.Fprintf(d.out, "%s %s\n", now.Format(time.TimeOnly), l)
		}
		if p.note != "" && p.note != d.notes[p.UID] && awaitedDevice(p.Pod) == "" { // else the line says it
			fmt.Fprintf(d.out, "%s %s/%s is not up: %s\n", now.Format(time.TimeOnly), p.Namespace, p.Name, p.note)
		}
		d.notes[p.UID] = p.note
	}
	for uid, l := range d.lines {
		if !seen[uid] {
			delete(d.lines, uid)
			delete(d.notes, uid)
			fmt.Fprintf(d.out, "%s gone: %s\n", now.Format(time.TimeOnly), l)
		}
	}
}

func (d *Display) sorted() []shownPod {
	d.mu.Lock()
	defer d.mu.Unlock()
	pods := make([]shownPod, 0, len(d.pods))
	for _, p := range d.pods {
		pods = append(pods, p)
	}
	slices.SortFunc(pods, func(a, d shownPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, d.Namespace), cmp.Compare(a.Name, d.Name), cmp.Compare(a.UID, d.UID))
	})
	return pods
}
