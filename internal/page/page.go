package page

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/clock"

	"swiftlet/internal/contain"
	"swiftlet/internal/notify"
	"swiftlet/internal/page/assets"
	"swiftlet/internal/require"
	"swiftlet/internal/stats"
	"swiftlet/internal/why"
)

// Pods lists the pods of the node. Callers do not change them.
type Pods interface {
	List() []*v1.Pod
	Get(types.UID) (*v1.Pod, bool)
}

// Statuses has the status of each pod as last derived, and reports each change of one.
type Statuses interface {
	Get(types.UID) (v1.PodStatus, bool)
	SubscribePods(changed func(types.UID))
}

// Why describes why pods and the node are not up.
type Why interface {
	Report(types.UID, *v1.PodStatus) (why.Report, bool)
	Node() why.NodeReport
}

// Usage reads what the node and its pods use.
type Usage interface {
	Counters() stats.Counters
	UsageSummary(context.Context) (*statsapi.Summary, error)
}

// Deps are the dependencies of a Page.
type Deps struct {
	Pods     Pods
	Statuses Statuses
	Why      Why
	Usage    Usage
	// Node returns the Node.
	Node func() *v1.Node
	// Events lists the last events of the node and its pods.
	Events func() []v1.Event
	// Open returns a file of the page.
	Open  func(name string) (assets.File, bool)
	Clock clock.WithTicker
	// Panics reports panics in the description of pods and the node, which the page survives.
	Panics contain.Reporter
	Log    *slog.Logger
}

// Page serves the page. Its methods are safe for concurrent use.
type Page struct {
	deps Deps
	mux  *http.ServeMux
	axis axis
	// opened wakes Run for the first page, open is set while there are any.
	opened notify.Signal
	open   atomic.Bool

	dirtyMu sync.Mutex
	dirty   map[types.UID]bool // pods whose status has changed; nil while no page is open

	mu      sync.Mutex
	rows    map[types.UID]*row
	streams map[*stream]bool
	begun   bool   // the rows of all pods are there
	node    []byte // the NodeView as last sent
	nodeDue bool   // it may have changed
	samples nodeSamples
	usage   podSamples
}

// New validates its arguments and starts nothing.
func New(deps Deps) (*Page, error) {
	if err := require.Set("new page", map[string]any{
		"Pods": deps.Pods, "Statuses": deps.Statuses, "Why": deps.Why, "Usage": deps.Usage, "Node": deps.Node, "Events": deps.Events,
		"Open": deps.Open, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	p := &Page{deps: deps, axis: newAxis(deps.Clock.Now()), opened: notify.New(), rows: map[types.UID]*row{}, streams: map[*stream]bool{}}
	p.samples = newNodeSamples(p.axis)
	p.mux = p.routes()
	deps.Statuses.SubscribePods(p.markDirty)
	return p, nil
}

// markDirty is called for each change of a status.
func (p *Page) markDirty(uid types.UID) {
	if !p.open.Load() {
		return
	}
	p.dirtyMu.Lock()
	defer p.dirtyMu.Unlock()
	if p.dirty != nil {
		p.dirty[uid] = true
	}
}

// takeDirty returns the pods that have changed since the last call, and collects further ones if more is set.
func (p *Page) takeDirty(more bool) map[types.UID]bool {
	p.dirtyMu.Lock()
	defer p.dirtyMu.Unlock()
	taken := p.dirty
	p.dirty = nil
	if more {
		p.dirty = map[types.UID]bool{}
	}
	return taken
}

// withStatus returns a copy of the pod with its status as last derived.
func (p *Page) withStatus(desired *v1.Pod) *v1.Pod {
	shown := *desired
	if s, derived := p.deps.Statuses.Get(desired.UID); derived {
		shown.Status = s
	}
	return &shown
}

// find returns the pod of that name, of several one that is not being deleted; nil if there is none.
func (p *Page) find(namespace, name string) (found *v1.Pod) {
	for _, d := range p.deps.Pods.List() {
		if d.Namespace == namespace && d.Name == name && (found == nil || found.DeletionTimestamp != nil && d.DeletionTimestamp == nil) {
			found = d
		}
	}
	if found != nil {
		found = p.withStatus(found)
	}
	return found
}

// report describes a pod, nil if its steps are not known.
func (p *Page) report(of *v1.Pod) *why.Report {
	r, known := p.deps.Why.Report(of.UID, &of.Status)
	if !known {
		return nil
	}
	return &r
}

// uptime is in seconds, of whole minutes.
func uptime(boot, now time.Time) int64 {
	if boot.IsZero() {
		return 0
	}
	return int64(now.Sub(boot).Truncate(time.Minute) / time.Second)
}
