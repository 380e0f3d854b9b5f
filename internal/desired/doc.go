// Package desired has the desired pods of this node: it merges the snapshots of all sources into ordered
// changes and pairs static pods with their mirrors.
package desired
