// Package source reads the pods of this node from files, a URL and the API server. Each source sends
// complete snapshots.
package source
