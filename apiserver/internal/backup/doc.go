// Package backup writes a node's store, and the keys without which its objects are of no use, to one file, and
// restores them.
//
// The file is a compressed tar archive. Its first entry is a manifest with the format, the versions, and the size
// and SHA-256 of each further entry.
package backup
