// Package desired holds what is wanted on this node: it merges the snapshots of all
// sources into ordered changes and pairs each static pod with its mirror.
package desired
