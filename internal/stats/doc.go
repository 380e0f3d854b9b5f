// Package stats tells what the node, its pods and their containers use. It reads the
// kernel's own counters (cgroup v1 or v2, procfs, statfs) at the moment somebody asks, and
// asks the runtime only for what the kernel does not know: the size of images and of
// containers' writable layers. Nothing is sampled in between: a node that nobody scrapes
// spends nothing on statistics.
//
// Those who ask at the same time share one reading. The only thing kept from one reading to
// the next is each group's last CPU total, because a rate needs two.
package stats
