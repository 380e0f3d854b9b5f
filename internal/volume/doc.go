// Package volume reconciles the desired volumes of pods with the mounted ones: it mounts volumes,
// refreshes their content and unmounts them.
//
// Each kind of volume is a plugin in a directory of its own; package plugin is their contract.
// Package mounts is the only importer of mount system calls, safepath the only way to a path that
// a pod can influence.
package volume
