package page

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"swiftlet/internal/pod"
)

const (
	// beat is the shortest time between two updates of a pod.
	beat = 250 * time.Millisecond
	// Every so many beats pods are described again that are not up, the pod of a page if it has changed, that pod in any
	// case, and the node.
	scanBeats, detailBeats, wholeBeats, nodeBeats = 4, 2, 20, 8
	// closedInterval is that of the node's samples while no page is open.
	closedInterval = time.Minute
	// linger is how long all goes on after the last page was closed: it may only be loaded again.
	linger = 30 * time.Second
)

// row is a pod as last sent.
type row struct {
	desired *v1.Pod // to see when it is replaced
	view    PodRow
	text    []byte
	ended   bool
	// broken: the description of the pod has panicked. It is made again when the pod or its status changes.
	broken bool
}

// Run samples the node, and while a page is open the pods, until ctx is done.
func (p *Page) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		p.sampleNode()
		select {
		case <-ctx.Done():
		case <-p.opened:
			p.runOpen(ctx)
		case <-p.deps.Clock.After(closedInterval):
		}
	}
	return nil
}

// runOpen updates the rows and wakes the streams, until no page is open.
func (p *Page) runOpen(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	readings := newReadings(ctx, p.deps.Usage, p.contained, p.deps.Log)
	defer readings.wait()
	defer stop()
	p.begin()
	defer p.end()
	readings.request()
	ticks := p.deps.Clock.NewTicker(beat)
	defer ticks.Stop()
	closed, sampled := time.Time{}, p.deps.Clock.Now()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case pods := <-readings.done:
			p.contained(func() { p.addUsage(pods) })
			continue
		case <-ticks.C():
		}
		now := p.deps.Clock.Now()
		if p.axis.slot(now) != p.axis.slot(sampled) {
			sampled = now
			p.sampleNode()
			readings.request()
		}
		p.update(n)
		switch {
		case p.count() > 0:
			closed = time.Time{}
		case closed.IsZero():
			closed = now
		case now.Sub(closed) >= linger:
			return
		}
	}
}

// begin describes all pods for the first page.
func (p *Page) begin() {
	p.takeDirty(true)
	p.open.Store(true)
	for _, desired := range p.deps.Pods.List() {
		p.refresh(desired.UID)
	}
	p.refreshNode()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	for s := range p.streams {
		s.begin()
	}
}

// end drops what is kept while a page is open.
func (p *Page) end() {
	p.open.Store(false)
	p.takeDirty(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.usage, p.node, p.begun = map[types.UID]*row{}, podSamples{}, nil, false
	select { // of a page that has come while others were open
	case <-p.opened:
	default:
	}
	if len(p.streams) > 0 { // one has come just now
		p.opened.Notify()
	}
}

func (p *Page) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams)
}

// update is what happens at the n-th beat.
func (p *Page) update(n int) {
	changed := p.takeDirty(true)
	if changed == nil {
		changed = map[types.UID]bool{}
	}
	if n%scanBeats == 0 {
		p.scan(changed)
	}
	for uid := range changed {
		p.refresh(uid)
	}
	if n%nodeBeats == 0 && p.takeNodeDue() {
		p.refreshNode()
	}
	if n%detailBeats == 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		for s := range p.streams {
			s.offerDetail(n%wholeBeats == 0)
		}
	}
}

// scan adds the pods that were replaced, have come or gone, or are not up: not all steps change a pod's status.
func (p *Page) scan(changed map[types.UID]bool) {
	all := p.deps.Pods.List()
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := make(map[types.UID]bool, len(all))
	for _, desired := range all {
		seen[desired.UID] = true
		if r := p.rows[desired.UID]; r == nil || r.desired != desired || !r.view.Up && !r.broken {
			changed[desired.UID] = true
		}
	}
	for uid := range p.rows {
		if !seen[uid] {
			changed[uid] = true
		}
	}
}

// refresh describes a pod again and tells the streams if it has changed. A panic on one pod does not harm others.
func (p *Page) refresh(uid types.UID) {
	err := p.deps.Panics.Call("page", func() error { p.describe(uid); return nil }, "podUID", uid)
	if err == nil {
		return
	}
	desired, found := p.deps.Pods.Get(uid)
	if !found {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	view := PodRow{UID: uid, Namespace: desired.Namespace, Name: desired.Name, Containers: []string{}, Sentence: "cannot be described: internal error, see the log of the agent"}
	p.setRow(&row{desired: desired, view: view, text: encode(view), broken: true})
}

func (p *Page) describe(uid types.UID) {
	desired, found := p.deps.Pods.Get(uid)
	if !found {
		p.mu.Lock()
		defer p.mu.Unlock()
		if old := p.rows[uid]; old != nil {
			delete(p.rows, uid)
			p.nodeDue = true
			p.each(func(s *stream) { s.pods[uid] = true; s.touch(&old.view) })
		}
		return
	}
	shown := p.withStatus(desired)
	report := p.report(shown)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.streams {
		s.touch(&PodRow{Namespace: shown.Namespace, Name: shown.Name})
	}
	view := newPodRow(shown, report, p.usage.use(uid))
	text, err := json.Marshal(view)
	if err != nil {
		p.deps.Log.Error("encode pod for page: failed", "err", err)
		return
	}
	p.setRow(&row{desired: desired, view: view, text: text, ended: pod.IsTerminal(shown.Status.Phase)})
}

// setRow makes a row due if it is another than before. It is called with the lock held.
func (p *Page) setRow(r *row) {
	uid := r.view.UID
	old := p.rows[uid]
	p.rows[uid] = r
	if old == nil || !bytes.Equal(old.text, r.text) {
		p.nodeDue = true
		p.each(func(s *stream) { s.pods[uid] = true })
	}
}

// each changes what is due on each stream and wakes it. It is called with the lock held.
func (p *Page) each(change func(*stream)) {
	for s := range p.streams {
		change(s)
		s.wake.Notify()
	}
}

// takeNodeDue reports whether pods or usage have changed since the last call.
func (p *Page) takeNodeDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.nodeDue
	p.nodeDue = false
	return due
}

// contained calls what describes the node or adds usage. A panic leaves what was known before.
func (p *Page) contained(f func()) {
	_ = p.deps.Panics.Call("page", func() error { f(); return nil }) // Call has reported it
}

func (p *Page) refreshNode() { p.contained(p.describeNode) }

func (p *Page) describeNode() {
	report := p.deps.Why.Node()
	object := p.deps.Node()
	p.mu.Lock()
	defer p.mu.Unlock()
	view := p.nodeView(object, report.Sentence, p.deps.Clock.Now())
	text, err := json.Marshal(view)
	if err != nil {
		p.deps.Log.Error("encode node for page: failed", "err", err)
		return
	}
	if !bytes.Equal(p.node, text) {
		p.node = text
		p.each(func(s *stream) { s.node = true })
	}
}

func (p *Page) sampleNode() { p.contained(p.addCounters) }

func (p *Page) addCounters() {
	now := p.deps.Usage.Counters()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples.add(now)
	p.nodeDue = true
	p.each(func(s *stream) { s.sample = true })
}

// addUsage adds a reading of the usage of all pods.
func (p *Page) addUsage(pods []statsapi.PodStats) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.usage.add(pods, p.axis.slot(p.deps.Clock.Now()))
	for _, uid := range changed {
		r := p.rows[uid]
		if r == nil {
			continue
		}
		use := p.usage.use(uid)
		r.view.CPU, r.view.Memory = use.cpu, use.memory
		if text, err := json.Marshal(r.view); err == nil { // it was encoded before
			r.text = text
		}
	}
	p.each(func(s *stream) {
		for _, uid := range changed {
			s.usage[uid] = true
		}
		s.podSample = true
	})
}
