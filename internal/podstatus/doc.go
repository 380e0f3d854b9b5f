// Package podstatus derives what the API shows of a pod from its spec, what the runtime
// was observed to hold, and what the probes said. It does no I/O: given the same values it
// gives the same v1.PodStatus.
package podstatus
