package stats

import "strconv"

// diskFamilies are the node's file systems, with the labels of the root cgroup, and the I/O of every
// cgroup by device.
func diskFamilies() []family {
	return append(fileSystemFamilies(), deviceFamilies()...)
}

// putDevices writes a line for each device that a cgroup used.
func putDevices(put putFunc, s *series, value func(*deviceIO) uint64) {
	for i := range s.devices {
		d := &s.devices[i]
		put(float64(value(d)), s.at, s.head, label("device", s.names.of(d)), ",", s.middle, s.tail)
	}
}

func deviceFamilies() []family {
	cost := func(name, help, counter string) family {
		return family{name, "counter", help, func(put putFunc, s *series) {
			for i := range s.devices {
				if d := &s.devices[i]; len(d.cost) > 0 {
					put(float64(countOf(d.cost, counter))/1e6, s.at, s.head, label("device", s.names.of(d)), ",", s.middle, s.tail)
				}
			}
		}}
	}
	return []family{
		cost("container_fs_io_cost_indebt_seconds_total", "Cumulative IOCost debt in seconds", "cost.indebt"),
		cost("container_fs_io_cost_indelay_seconds_total", "Cumulative IOCost delay in seconds", "cost.indelay"),
		cost("container_fs_io_cost_usage_seconds_total", "Cumulative IOCost usage in seconds", "cost.usage"),
		cost("container_fs_io_cost_wait_seconds_total", "Cumulative IOCost wait in seconds", "cost.wait"),
		{"container_fs_reads_bytes_total", "counter", "Cumulative count of bytes read", func(put putFunc, s *series) {
			putDevices(put, s, func(d *deviceIO) uint64 { return countOf(d.bytes, "Read") })
		}},
		{"container_fs_writes_bytes_total", "counter", "Cumulative count of bytes written", func(put putFunc, s *series) {
			putDevices(put, s, func(d *deviceIO) uint64 { return countOf(d.bytes, "Write") })
		}},
		{"container_blkio_device_usage_total", "counter", "Blkio Device bytes usage", func(put putFunc, s *series) {
			for i := range s.devices {
				d := &s.devices[i]
				device := label("device", s.names.of(d)) + ","
				number := label("major", strconv.FormatUint(d.number[0], 10)) + "," + label("minor", strconv.FormatUint(d.number[1], 10)) + ","
				for _, c := range d.bytes {
					put(float64(c.count), s.at, s.head, device, s.middle, number, s.tail, ",", label("operation", c.operation))
				}
			}
		}},
	}
}

// fileSystemFamilies have the root cgroup's labels. Two of them also count the requests of other cgroups.
func fileSystemFamilies() []family {
	of := func(kind, name, help string, value func(*fileSystem) float64) family {
		return family{name, kind, help, func(put putFunc, s *series) {
			if s.root == nil {
				return
			}
			for i := range *s.root {
				f := &(*s.root)[i]
				put(value(f), s.at, s.head, label("device", f.device), ",", s.middle, s.tail)
			}
		}}
	}
	count := func(name, help string, value func(*fileSystem) uint64) family {
		return of("counter", name, help, func(f *fileSystem) float64 { return float64(value(f)) })
	}
	requests := func(operation, name, help string, value func(*fileSystem) uint64) family {
		f := count(name, help, value)
		ofFileSystems := f.write
		f.write = func(put putFunc, s *series) {
			putDevices(put, s, func(d *deviceIO) uint64 { return countOf(d.requests, operation) })
			ofFileSystems(put, s)
		}
		return f
	}
	gauge := func(name, help string, value func(*fileSystem) uint64) family {
		return of("gauge", name, help, func(f *fileSystem) float64 { return float64(value(f)) })
	}
	millis := func(name, help string, value func(*fileSystem) uint64) family {
		return of("counter", name, help, func(f *fileSystem) float64 { return float64(value(f)) / 1e3 })
	}
	return []family{
		gauge("container_fs_inodes_free", "Number of available Inodes", func(f *fileSystem) uint64 { return f.inodesFree }),
		gauge("container_fs_inodes_total", "Number of Inodes", func(f *fileSystem) uint64 { return f.inodes }),
		gauge("container_fs_limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.", func(f *fileSystem) uint64 { return f.capacity }),
		gauge("container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", func(f *fileSystem) uint64 { return f.used }),
		gauge("container_fs_io_current", "Number of I/Os currently in progress", func(f *fileSystem) uint64 { return f.disk.running }),
		millis("container_fs_io_time_seconds_total", "Cumulative count of seconds spent doing I/Os", func(f *fileSystem) uint64 { return f.disk.busyMillis }),
		millis("container_fs_io_time_weighted_seconds_total", "Cumulative weighted I/O time in seconds", func(f *fileSystem) uint64 { return f.disk.weightedMillis }),
		millis("container_fs_read_seconds_total", "Cumulative count of seconds spent reading", func(f *fileSystem) uint64 { return f.disk.readMillis }),
		count("container_fs_reads_merged_total", "Cumulative count of reads merged", func(f *fileSystem) uint64 { return f.disk.readsMerged }),
		requests("Read", "container_fs_reads_total", "Cumulative count of reads completed", func(f *fileSystem) uint64 { return f.disk.reads }),
		count("container_fs_sector_reads_total", "Cumulative count of sector reads completed", func(f *fileSystem) uint64 { return f.disk.sectorsRead }),
		count("container_fs_sector_writes_total", "Cumulative count of sector writes completed", func(f *fileSystem) uint64 { return f.disk.sectorsWritten }),
		millis("container_fs_write_seconds_total", "Cumulative count of seconds spent writing", func(f *fileSystem) uint64 { return f.disk.writeMillis }),
		count("container_fs_writes_merged_total", "Cumulative count of writes merged", func(f *fileSystem) uint64 { return f.disk.writesMerged }),
		requests("Write", "container_fs_writes_total", "Cumulative count of writes completed", func(f *fileSystem) uint64 { return f.disk.writes }),
	}
}
