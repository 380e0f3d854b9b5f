// Package probe asks containers whether they have started, are alive and are ready. All
// probes of the node share one timer heap; a probe costs nothing between two askings.
package probe
