// Package source reads the pods that are wanted on this node from where they are written
// down: files, a URL, the API server. Each source sends complete snapshots.
package source
