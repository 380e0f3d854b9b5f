// Package volume holds what pods want mounted against what is mounted, and brings the two
// together: it mounts, keeps the content fresh, and takes everything away again.
//
// Each kind of volume is a plugin in a directory of its own; plugin states their contract.
// mounts is the only importer of mount system calls, safepath the only way to a path that
// a pod can influence.
package volume
