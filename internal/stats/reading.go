package stats

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"swiftlet/internal/cgroup"
	"swiftlet/internal/pod"
)

// reading is the usage of the whole node at one time. It is shared and read-only.
type reading struct {
	at      time.Time
	root    usage
	parents []usage       // the cgroup of all pods first, then the QoS classes
	system  []systemUsage // the cgroups of system daemons
	pods    []podUsage
	network []traffic
	// partialErr is the first read error, other than of cgroups that vanished meanwhile.
	partialErr error
}

type systemUsage struct {
	SystemCgroup
	usage
}

// podUsage is one pod. It has a cgroup; everything else may be missing.
type podUsage struct {
	pod.Ref
	usage
	start      time.Time
	sandbox    *containerUsage
	containers []containerUsage // running ones, ordered by name
	network    []traffic
}

// containerUsage is one container, or the sandbox.
type containerUsage struct {
	usage
	id, name, image string
	start           time.Time
}

// read reads the node, or waits for a reading in progress.
func (s *Stats) read(ctx context.Context, of scope) (*reading, error) {
	// The reading is shared by all that wait for it, so one canceled caller must not end it.
	shared := context.WithoutCancel(ctx)
	answer := s.flight.DoChan(fmt.Sprint(of), func() (any, error) { return s.readNow(shared, of) })
	select {
	case got := <-answer:
		r, _ := got.Val.(*reading)
		return r, got.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("read statistics: %w", ctx.Err())
	}
}

func (s *Stats) readNow(ctx context.Context, of scope) (*reading, error) {
	d := of.depth
	groups, err := s.deps.Cgroups.Groups()
	if err != nil {
		return nil, fmt.Errorf("read statistics: %w", err)
	}
	buf := newFileReader()
	r := &reading{at: s.deps.Clock.Now()}
	if r.root, err = s.readGroup(buf, "/", s.boot, d); err != nil {
		return nil, fmt.Errorf("read statistics of the node: %w", err)
	}
	for _, g := range groups {
		if g.Pod == "" {
			s.appendGroup(r, &r.parents, buf, g.Path, d)
		}
	}
	for _, g := range s.cfg.SystemCgroups {
		var one []usage
		if s.appendGroup(r, &one, buf, g.Path, d); len(one) == 1 {
			r.system = append(r.system, systemUsage{g, one[0]})
		}
	}
	if !of.nodeOnly {
		s.readPods(r, buf, groups, d)
	}
	if d >= summary {
		if r.network, err = readNetwork(buf, "self"); err != nil {
			r.recordErr(err)
		}
	}
	s.rates.update(r.all())
	if d == deep {
		s.setSandboxImages(ctx, r)
	}
	return r, nil
}

// readGroup reads a cgroup that was created at the given time. If that is zero, it takes the
// modification time of the directory, which is when the kernel first created its inode.
func (s *Stats) readGroup(buf *fileReader, path string, created time.Time, d depth) (usage, error) {
	u, err := s.groups.read(buf, path, d)
	if created.IsZero() && err == nil {
		if info, err := os.Stat(s.groups.dir(path)); err == nil {
			created = info.ModTime()
		}
	}
	u.at, u.created = s.deps.Clock.Now(), created
	return u, err
}

// appendGroup reads a cgroup and appends it to a list, unless it is gone.
func (s *Stats) appendGroup(r *reading, list *[]usage, buf *fileReader, path string, d depth) {
	u, err := s.readGroup(buf, path, time.Time{}, d)
	if err != nil {
		r.recordErr(err)
		return
	}
	*list = append(*list, u)
}

// recordErr keeps the first error that is not of a vanished file.
func (r *reading) recordErr(err error) {
	if err != nil && !isGone(err) && r.partialErr == nil {
		r.partialErr = err
	}
}

func (s *Stats) readPods(r *reading, buf *fileReader, groups []cgroup.Group, d depth) {
	seen := map[string]pod.Observed{}
	for _, o := range s.deps.Pods() {
		seen[string(o.UID)] = o
	}
	for _, g := range groups {
		o, known := seen[string(g.Pod)]
		if g.Pod == "" || !known {
			continue // the runtime does not have the pod yet, or no longer
		}
		var start time.Time
		if first := len(o.Sandboxes); first > 0 { // the cgroup outlives sandboxes
			start = o.Sandboxes[first-1].CreatedAt
		}
		u, err := s.readGroup(buf, g.Path, start, d)
		if err != nil {
			r.recordErr(err)
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

// readContainers reads the cgroups inside a pod's. The runtime chooses their names, which
// contain the container ID.
func (s *Stats) readContainers(r *reading, buf *fileReader, p *podUsage, o *pod.Observed, d depth) {
	entries, err := os.ReadDir(s.groups.dir(p.path))
	if err != nil {
		r.recordErr(err)
		return
	}
	groups := map[string]string{}
	for _, e := range entries {
		if id, ok := containerID(e.Name()); ok && e.IsDir() {
			groups[id] = p.path + "/" + e.Name()
		}
	}
	read := func(id, name, image string, start time.Time) *containerUsage {
		path, ok := groups[id]
		if !ok {
			return nil
		}
		u, err := s.readGroup(buf, path, start, d)
		if err != nil {
			r.recordErr(err)
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

// readPodNetwork reads the network namespace of the pod through one of its processes.
func (s *Stats) readPodNetwork(r *reading, buf *fileReader, p *podUsage) {
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
		r.recordErr(err)
	}
}

// containerID extracts the ID from the name of a cgroup: ID, or RUNTIME-ID.scope with systemd.
// CRI-O has a cgroup for the container's monitor as well, which is not the container's.
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

// all lists every cgroup that was read.
func (r *reading) all() []*usage {
	list := []*usage{&r.root}
	for i := range r.parents {
		list = append(list, &r.parents[i])
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

// setSandboxImages sets the images of sandboxes, which only the runtime knows.
func (s *Stats) setSandboxImages(ctx context.Context, r *reading) {
	present := map[string]bool{}
	for i := range r.pods {
		sandbox := r.pods[i].sandbox
		if sandbox == nil {
			continue
		}
		present[sandbox.id] = true
		image, err := s.sandboxImages.get(ctx, s.deps.Runtime, sandbox.id)
		if err != nil {
			s.deps.Log.Debug("stats: read image of sandbox failed", "sandbox", sandbox.id, "err", err)
		}
		sandbox.image = image
	}
	s.sandboxImages.retain(present)
}
