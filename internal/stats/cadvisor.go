package stats

import (
	"context"
	"io"
	"time"
)

// series is one group under the labels that its metrics carry.
type series struct {
	*usage
	// head, middle and tail are the labels, cut where others stand between them: after
	// container come cpu, device and failure_type, after image comes interface, after pod
	// come scope and ulimit.
	head, middle, tail string

	start    time.Time
	now      time.Time
	root     *[]fileSystem // of the root alone
	network  []traffic
	hasFirst bool // ulimits are told
}

// family is one metric with all its series.
type family struct {
	name, kind, help string
	// write tells of one group; a family of which nobody tells is left out.
	write func(put func(value float64, at time.Time, labels ...string), s *series)
}

// WriteCadvisor writes what is known of every group, in the Prometheus text format and
// under the names that cAdvisor gave them. Trouble is told in the metric
// container_scrape_error; only a failed write is an error.
func (s *Stats) WriteCadvisor(ctx context.Context, out io.Writer) error {
	t := newText(out)
	t.heading("cadvisor_version_info", "gauge", "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.")
	t.sample("cadvisor_version_info", 1, time.Time{}, label("cadvisorRevision", ""), ",", label("cadvisorVersion", ""), ",",
		label("dockerVersion", ""), ",", label("kernelVersion", s.cfg.Machine.Kernel), ",", label("osVersion", s.cfg.Machine.OSImage))
	trouble := 0.0
	r, err := s.read(ctx, deep)
	if err == nil {
		err = s.writeGroups(t, r)
	}
	if err != nil {
		s.deps.Log.Error("statistics cannot be read", "err", err)
		trouble = 1
	}
	t.heading("container_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise")
	t.sample("container_scrape_error", trouble, time.Time{})
	s.writeMachine(t)
	return t.end()
}

// writeGroups writes all families. What could be read is written whatever is missing.
func (s *Stats) writeGroups(t *text, r *reading) error {
	disks, err := readFileSystems(newScratch(), s.cfg.RootDir)
	all := s.seriesOf(r, disks)
	for i := range s.table {
		f := &s.table[i]
		begun := false
		put := func(value float64, at time.Time, labels ...string) {
			if !begun {
				t.heading(f.name, f.kind, f.help)
				begun = true
			}
			t.sample(f.name, value, at, labels...)
		}
		for j := range all {
			f.write(put, &all[j])
		}
	}
	if err == nil {
		err = r.trouble
	}
	return err
}

// seriesOf names every group.
func (s *Stats) seriesOf(r *reading, disks []fileSystem) []series {
	all := make([]series, 0, 2+len(r.above)+len(r.system)+3*len(r.pods))
	add := func(u *usage, start time.Time, container, image, name, namespace, pod string) *series {
		all = append(all, series{
			usage:  u,
			start:  start,
			now:    r.at,
			head:   label("container", container) + ",",
			middle: label("id", u.path) + "," + label("image", image) + ",",
			tail:   label("name", name) + "," + label("namespace", namespace) + "," + label("pod", pod),
		})
		return &all[len(all)-1]
	}
	root := add(&r.root, r.root.created, "", "", "", "", "")
	root.root, root.network, root.hasFirst = &disks, r.network, true
	for i := range r.above {
		add(&r.above[i], r.above[i].created, "", "", "", "", "")
	}
	for i := range r.system {
		add(&r.system[i].usage, r.system[i].created, "", "", "", "", "")
	}
	for i := range r.pods {
		p := &r.pods[i]
		add(&p.usage, p.created, "", "", "", p.Namespace, p.Name)
		if c := p.sandbox; c != nil {
			infra := add(&c.usage, c.start, "", c.image, c.id, p.Namespace, p.Name)
			infra.network, infra.hasFirst = p.network, true
		}
		for j := range p.containers {
			c := &p.containers[j]
			add(&c.usage, c.start, c.name, c.image, c.id, p.Namespace, p.Name).hasFirst = true
		}
	}
	return all
}

// writeMachine writes what does not change.
func (s *Stats) writeMachine(t *text) {
	m := &s.cfg.Machine
	of := label("boot_id", m.BootID) + "," + label("machine_id", m.MachineID) + ","
	uuid := label("system_uuid", m.SystemUUID)
	put := func(name, help string, value float64) {
		t.heading(name, "gauge", help)
		t.sample(name, value, time.Time{}, of, uuid)
	}
	put("machine_cpu_books", "Number of CPU books.", float64(s.cpus.books))
	put("machine_cpu_cores", "Number of logical CPU cores.", float64(m.CPUs))
	put("machine_cpu_drawers", "Number of CPU drawers.", float64(s.cpus.drawers))
	put("machine_cpu_physical_cores", "Number of physical CPU cores.", float64(s.cpus.cores))
	put("machine_cpu_sockets", "Number of CPU sockets.", float64(s.cpus.sockets))
	put("machine_memory_bytes", "Amount of memory installed on the machine.", float64(m.Memory))
	t.heading("machine_scrape_error", "gauge", "1 if there was an error while getting machine metrics, 0 otherwise.")
	t.sample("machine_scrape_error", 0, time.Time{})
	put("machine_swap_bytes", "Amount of swap memory available on the machine.", float64(m.Swap))
}
