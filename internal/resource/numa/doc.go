// Package numa is the topology manager: it collects the NUMA hints of the CPU, memory and device
// managers for a container or pod, merges them by the policy, and has the managers allocate on the
// resulting NUMA nodes.
package numa
