// Package probe runs the startup, liveness and readiness probes of containers. All probes of the
// node share one timer heap; a probe costs nothing between two runs.
package probe
