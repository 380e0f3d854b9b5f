package stats

import (
	"context"
	"io"
	"time"
)

// series is one cgroup with the labels of its metrics.
type series struct {
	*usage
	// head, middle and tail are the labels, split where some families insert others: after
	// container come cpu, device and failure_type, after image comes interface, after pod
	// come scope and ulimit.
	head, middle, tail string

	start      time.Time
	now        time.Time
	root       *[]fileSystem // of the root cgroup only
	names      deviceNames   // of the devices in usage
	network    []traffic
	hasUlimits bool // whether ulimits are written
}

// family is one metric with all its series.
type family struct {
	name, kind, help string
	// write writes the lines of one cgroup; a family without lines is omitted.
	write func(put func(value float64, at time.Time, labels ...string), s *series)
}

// WriteCadvisor writes the metrics of every cgroup, or those that the runtime reports, in the
// Prometheus text format, with cAdvisor's names. It reports a read error as the metric container_scrape_error; it returns
// only write errors.
func (s *Stats) WriteCadvisor(ctx context.Context, out io.Writer) error {
	t := newTextWriter(out)
	if s.writeRuntimeMetrics(ctx, t) {
		s.writeMachine(t)
		return t.close()
	}
	t.header("cadvisor_version_info", "gauge", "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.")
	t.sample("cadvisor_version_info", 1, time.Time{}, label("cadvisorRevision", ""), ",", label("cadvisorVersion", ""), ",",
		label("dockerVersion", ""), ",", label("kernelVersion", s.cfg.Machine.Kernel), ",", label("osVersion", s.cfg.Machine.OSImage))
	scrapeError := 0.0
	r, err := s.read(ctx, scope{depth: deep})
	if err == nil {
		err = s.writeGroups(t, r)
	}
	if err != nil {
		s.deps.Log.Error("stats: read usage for /metrics/cadvisor failed", "err", err)
		scrapeError = 1
	}
	t.header("container_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise")
	t.sample("container_scrape_error", scrapeError, time.Time{})
	s.writeMachine(t)
	return t.close()
}

// writeGroups writes all families. It writes what could be read, even after an error.
func (s *Stats) writeGroups(t *textWriter, r *reading) error {
	disks, err := readFileSystems(newFileReader(), s.cfg.RootDir)
	all := s.seriesOf(r, disks)
	for i := range s.table {
		f := &s.table[i]
		begun := false
		put := func(value float64, at time.Time, labels ...string) {
			if !begun {
				t.header(f.name, f.kind, f.help)
				begun = true
			}
			t.sample(f.name, value, at, labels...)
		}
		for j := range all {
			f.write(put, &all[j])
		}
	}
	if err == nil {
		err = r.partialErr
	}
	return err
}

// seriesOf labels every cgroup.
func (s *Stats) seriesOf(r *reading, disks []fileSystem) []series {
	names := readDeviceNames("/sys/block", disks)
	all := make([]series, 0, 2+len(r.parents)+len(r.system)+3*len(r.pods))
	add := func(u *usage, start time.Time, container, image, name, namespace, pod string) *series {
		all = append(all, series{
			usage:  u,
			start:  start,
			now:    r.at,
			names:  names,
			head:   label("container", container) + ",",
			middle: label("id", u.path) + "," + label("image", image) + ",",
			tail:   label("name", name) + "," + label("namespace", namespace) + "," + label("pod", pod),
		})
		return &all[len(all)-1]
	}
	root := add(&r.root, r.root.created, "", "", "", "", "")
	root.root, root.network, root.hasUlimits = &disks, r.network, true
	for i := range r.parents {
		add(&r.parents[i], r.parents[i].created, "", "", "", "", "")
	}
	for i := range r.system {
		add(&r.system[i].usage, r.system[i].created, "", "", "", "", "")
	}
	for i := range r.pods {
		p := &r.pods[i]
		add(&p.usage, p.created, "", "", "", p.Namespace, p.Name)
		if c := p.sandbox; c != nil {
			infra := add(&c.usage, c.start, "", c.image, c.id, p.Namespace, p.Name)
			infra.network, infra.hasUlimits = p.network, true
		}
		for j := range p.containers {
			c := &p.containers[j]
			add(&c.usage, c.start, c.name, c.image, c.id, p.Namespace, p.Name).hasUlimits = true
		}
	}
	return all
}

// writeMachine writes the constants of the machine.
func (s *Stats) writeMachine(t *textWriter) {
	m := &s.cfg.Machine
	of := label("boot_id", m.BootID) + "," + label("machine_id", m.MachineID) + ","
	uuid := label("system_uuid", m.SystemUUID)
	put := func(name, help string, value float64) {
		t.header(name, "gauge", help)
		t.sample(name, value, time.Time{}, of, uuid)
	}
	put("machine_cpu_books", "Number of CPU books.", float64(s.cpus.books))
	put("machine_cpu_cores", "Number of logical CPU cores.", float64(m.CPUs))
	put("machine_cpu_drawers", "Number of CPU drawers.", float64(s.cpus.drawers))
	put("machine_cpu_physical_cores", "Number of physical CPU cores.", float64(s.cpus.nanoCores))
	put("machine_cpu_sockets", "Number of CPU sockets.", float64(s.cpus.sockets))
	put("machine_memory_bytes", "Amount of memory installed on the machine.", float64(m.Memory))
	t.header("machine_scrape_error", "gauge", "1 if there was an error while getting machine metrics, 0 otherwise.")
	t.sample("machine_scrape_error", 0, time.Time{})
	put("machine_swap_bytes", "Amount of swap memory available on the machine.", float64(m.Swap))
}
