// Package stats reads the resource usage of the node, its pods and their containers. It reads
// the kernel's counters (cgroup v1 or v2, procfs, statfs) on request, and asks the runtime only
// for what the kernel does not have: the size of images and of writable layers. With
// PodAndContainerStatsFromCRI the runtime reports the usage of pods and containers instead. Nothing
// is sampled in the background: a node that is not scraped spends nothing on statistics.
//
// Concurrent requests share one reading. The only state between readings is each cgroup's last
// CPU total, because a rate needs two.
package stats
