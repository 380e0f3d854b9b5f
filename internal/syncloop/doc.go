// Package syncloop is the one select of the agent: what is wanted, what was observed and
// what the probes found all arrive here, and leave as work for the pods' workers.
package syncloop
