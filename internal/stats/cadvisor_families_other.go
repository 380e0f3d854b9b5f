package stats

import "time"

func taskFamilies() []family {
	of := func(name, help string, value func(*taskUsage) uint64) family {
		return perGroup("gauge", name, help, func(s *series) float64 { return float64(value(&s.tasks)) })
	}
	return []family{
		of("container_file_descriptors", "Number of open file descriptors for the container.", func(t *taskUsage) uint64 { return t.files }),
		of("container_processes", "Number of processes running inside the container.", func(t *taskUsage) uint64 { return t.processes }),
		of("container_sockets", "Number of open sockets for the container.", func(t *taskUsage) uint64 { return t.sockets }),
		of("container_threads", "Number of threads running inside the container", func(t *taskUsage) uint64 { return t.threads }),
		of("container_threads_max", "Maximum number of threads allowed inside the container, infinity if value is zero", func(t *taskUsage) uint64 { return t.maxThreads }),
		{"container_ulimits_soft", "gauge", "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice", func(put putFunc, s *series) {
			if s.hasUlimits && s.tasks.first != 0 {
				put(float64(s.tasks.openFiles), s.at, s.head, s.middle, s.tail, `,ulimit="max_open_files"`)
			}
		}},
		{"container_last_seen", "gauge", "Last time a container was seen by the exporter", func(put putFunc, s *series) {
			put(float64(s.now.Unix()), s.now, s.head, s.middle, s.tail)
		}},
		// Only Docker has health checks of images; pods have probes.
		perGroup("gauge", "container_health_state", "The result of the container's health check", func(*series) float64 { return -1 }),
	}
}

// specFamilies are limits and other settings rather than usage, and have no timestamp.
func specFamilies() []family {
	of := func(name, help string, value func(*series) float64) family {
		return family{name, "gauge", help, func(put putFunc, s *series) {
			put(value(s), time.Time{}, s.head, s.middle, s.tail)
		}}
	}
	limit := func(n uint64) float64 {
		if !hasLimit(n) {
			return 0
		}
		return float64(n)
	}
	return []family{
		of("container_creation_time_seconds", "Container creation time since unix epoch in seconds.", func(s *series) float64 { return float64(s.created.Unix()) }),
		of("container_start_time_seconds", "Start time of the container since unix epoch in seconds.", func(s *series) float64 { return float64(s.start.Unix()) }),
		of("container_spec_cpu_period", "CPU period of the container.", func(s *series) float64 { return float64(s.cpu.period) }),
		{"container_spec_cpu_quota", "gauge", "CPU quota of the container.", func(put putFunc, s *series) {
			if s.cpu.quota != 0 {
				put(float64(s.cpu.quota), time.Time{}, s.head, s.middle, s.tail)
			}
		}},
		of("container_spec_cpu_shares", "CPU share of the container.", func(s *series) float64 { return float64(s.cpu.shares) }),
		of("container_spec_memory_limit_bytes", "Memory limit for the container.", func(s *series) float64 { return limit(s.memory.limit) }),
		of("container_spec_memory_reservation_limit_bytes", "Memory reservation limit for the container.", func(s *series) float64 { return limit(s.memory.reservation) }),
		of("container_spec_memory_swap_limit_bytes", "Memory swap limit for the container.", func(s *series) float64 {
			if hasLimit(s.memory.memswLimit) {
				return float64(s.memory.memswLimit)
			}
			return limit(s.memory.swapLimit)
		}),
	}
}

// networkFamilies are the interfaces of the node, and of each pod with its sandbox.
func networkFamilies() []family {
	of := func(name, help string, value func(*traffic) uint64) family {
		return family{name, "counter", help, func(put putFunc, s *series) {
			for i := range s.network {
				t := &s.network[i]
				put(float64(value(t)), s.at, s.head, s.middle, label("interface", t.name), ",", s.tail)
			}
		}}
	}
	return []family{
		of("container_network_receive_bytes_total", "Cumulative count of bytes received", func(t *traffic) uint64 { return t.rxBytes }),
		of("container_network_receive_errors_total", "Cumulative count of errors encountered while receiving", func(t *traffic) uint64 { return t.rxErrors }),
		of("container_network_receive_packets_dropped_total", "Cumulative count of packets dropped while receiving", func(t *traffic) uint64 { return t.rxDropped }),
		of("container_network_receive_packets_total", "Cumulative count of packets received", func(t *traffic) uint64 { return t.rxPackets }),
		of("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", func(t *traffic) uint64 { return t.txBytes }),
		of("container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting", func(t *traffic) uint64 { return t.txErrors }),
		of("container_network_transmit_packets_dropped_total", "Cumulative count of packets dropped while transmitting", func(t *traffic) uint64 { return t.txDropped }),
		of("container_network_transmit_packets_total", "Cumulative count of packets transmitted", func(t *traffic) uint64 { return t.txPackets }),
	}
}
