package stats

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
)

// reading is the whole node at one moment. It is shared: nobody changes it.
type reading struct {
	at      time.Time
	root    usage
	above   []usage       // the group of all pods first, then the QoS classes
	system  []systemUsage // the node's own programs
	pods    []podUsage
	network []traffic
	// trouble is what could not be read, besides what vanished meanwhile.
	trouble error
}

type systemUsage struct {
	SystemGroup
	usage
}

// podUsage is one pod. It has a group; all else may be missing.
type podUsage struct {
	pod.Ref
	usage
	start      time.Time
	sandbox    *containerUsage
	containers []containerUsage // those that run, in the order of their names
	network    []traffic
}

// containerUsage is one container, or the sandbox's own process.
type containerUsage struct {
	usage
	id, name, image string
	start           time.Time
}

// read reads the node, or waits for the one who is reading it.
func (s *Stats) read(ctx context.Context, d depth) (*reading, error) {
	// Whoever reads does it for all who wait, so that nobody's impatience ends it.
	shared := context.WithoutCancel(ctx)
	answer := s.flight.DoChan(strconv.Itoa(int(d)), func() (any, error) { return s.readNow(shared, d) })
	select {
	case got := <-answer:
		r, _ := got.Val.(*reading)
		return r, got.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("read statistics: %w", ctx.Err())
	}
}

func (s *Stats) readNow(ctx context.Context, d depth) (*reading, error) {
	groups, err := s.deps.Cgroups.Groups()
	if err != nil {
		return nil, fmt.Errorf("read statistics: %w", err)
	}
	buf := newScratch()
	r := &reading{at: s.deps.Clock.Now()}
	if r.root, err = s.readGroup(buf, "/", s.boot, d); err != nil {
		return nil, fmt.Errorf("read statistics of the node: %w", err)
	}
	for _, g := range groups {
		if g.Pod == "" {
			s.take(r, &r.above, buf, g.Path, d)
		}
	}
	for _, g := range s.cfg.System {
		var one []usage
		if s.take(r, &one, buf, g.Path, d); len(one) == 1 {
			r.system = append(r.system, systemUsage{g, one[0]})
		}
	}
	s.readPods(r, buf, groups, d)
	if d >= summary {
		if r.network, err = readNetwork(buf, "self"); err != nil {
			r.note(err)
		}
	}
	s.rates.update(r.all())
	if d == deep {
		s.nameImages(ctx, r)
	}
	return r, nil
}

// readGroup reads a group that was made at the given time. Where that is not known, the
// kernel is asked; what it tells is when it first showed the directory to somebody.
func (s *Stats) readGroup(buf *scratch, path string, created time.Time, d depth) (usage, error) {
	u, err := s.groups.read(buf, path, d)
	if created.IsZero() && err == nil {
		if info, err := os.Stat(s.groups.dir(path)); err == nil {
			created = info.ModTime()
		}
	}
	u.at, u.created = s.deps.Clock.Now(), created
	return u, err
}

// take adds a group to a list, unless it is gone.
func (s *Stats) take(r *reading, list *[]usage, buf *scratch, path string, d depth) {
	u, err := s.readGroup(buf, path, time.Time{}, d)
	if err != nil {
		r.note(err)
		return
	}
	*list = append(*list, u)
}

// note keeps the first trouble that is one.
func (r *reading) note(err error) {
	if err != nil && !gone(err) && r.trouble == nil {
		r.trouble = err
	}
}

func (s *Stats) readPods(r *reading, buf *scratch, groups []cgroup.Group, d depth) {
	seen := map[string]pod.Observed{}
	for _, o := range s.deps.Pods() {
		seen[string(o.UID)] = o
	}
	for _, g := range groups {
		o, known := seen[string(g.Pod)]
		if g.Pod == "" || !known {
			continue // the group of a pod that is not there yet, or not any more
		}
		var start time.Time
		if first := len(o.Sandboxes); first > 0 { // the group outlives sandboxes
			start = o.Sandboxes[first-1].CreatedAt
		}
		u, err := s.readGroup(buf, g.Path, start, d)
		if err != nil {
			r.note(err)
			continue
		}
		p := podUsage{Ref: o.Ref, usage: u}
		s.readContainers(r, buf, &p, &o, d)
		r.pods = append(r.pods, p)
	}
	slices.SortFunc(r.pods, func(a, b podUsage) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
}

// readContainers reads the groups inside a pod's. How they are called is up to the runtime,
// but the container's id is in it.
func (s *Stats) readContainers(r *reading, buf *scratch, p *podUsage, o *pod.Observed, d depth) {
	entries, err := os.ReadDir(s.groups.dir(p.path))
	if err != nil {
		r.note(err)
		return
	}
	inside := map[string]string{}
	for _, e := range entries {
		if id, ok := containerID(e.Name()); ok && e.IsDir() {
			inside[id] = p.path + "/" + e.Name()
		}
	}
	read := func(id, name, image string, start time.Time) *containerUsage {
		path, ok := inside[id]
		if !ok {
			return nil
		}
		u, err := s.readGroup(buf, path, start, d)
		if err != nil {
			r.note(err)
			return nil
		}
		return &containerUsage{u, id, name, image, start}
	}
	for i := range o.Containers {
		c := &o.Containers[i]
		if c.State != pod.Running {
			continue
		}
		if one := read(c.ID, c.Name, c.Image, c.CreatedAt); one != nil {
			p.containers = append(p.containers, *one)
		}
	}
	slices.SortFunc(p.containers, func(a, b containerUsage) int { return strings.Compare(a.name, b.name) })
	if sandbox := o.Sandbox(); sandbox != nil {
		p.start = sandbox.CreatedAt
		if d >= summary {
			p.sandbox = read(sandbox.ID, "", "", sandbox.CreatedAt)
			s.readPodNetwork(r, buf, p)
		}
	}
}

// readPodNetwork looks at the network as any process of the pod sees it.
func (s *Stats) readPodNetwork(r *reading, buf *scratch, p *podUsage) {
	pid := 0
	if p.sandbox != nil {
		pid = p.sandbox.tasks.first
	}
	for i := 0; pid == 0 && i < len(p.containers); i++ {
		pid = p.containers[i].tasks.first
	}
	if pid == 0 {
		return
	}
	var err error
	if p.network, err = networkOf(buf, pid); err != nil {
		r.note(err)
	}
}

// containerID finds the id in the name of a group: ID, or RUNTIME-ID.scope under systemd.
// CRI-O gives a container's monitor a group as well, which is not the container's.
func containerID(dir string) (string, bool) {
	name, scope := strings.CutSuffix(dir, ".scope")
	if !scope {
		return name, true
	}
	i := strings.LastIndexByte(name, '-')
	if i < 0 || strings.HasSuffix(name[:i], "conmon") {
		return "", false
	}
	return name[i+1:], true
}

// all lists every group that was read.
func (r *reading) all() []*usage {
	list := []*usage{&r.root}
	for i := range r.above {
		list = append(list, &r.above[i])
	}
	for i := range r.system {
		list = append(list, &r.system[i].usage)
	}
	for i := range r.pods {
		p := &r.pods[i]
		list = append(list, &p.usage)
		for j := range p.containers {
			list = append(list, &p.containers[j].usage)
		}
	}
	return list
}

// nameImages fills in what only the runtime knows of sandboxes.
func (s *Stats) nameImages(ctx context.Context, r *reading) {
	known := map[string]bool{}
	for i := range r.pods {
		sandbox := r.pods[i].sandbox
		if sandbox == nil {
			continue
		}
		known[sandbox.id] = true
		image, err := s.images.of(ctx, s.deps.Runtime, sandbox.id)
		if err != nil {
			s.deps.Log.Debug("image of a sandbox is not known", "sandbox", sandbox.id, "err", err)
		}
		sandbox.image = image
	}
	s.images.keep(known)
}
