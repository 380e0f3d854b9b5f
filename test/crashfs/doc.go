// Package crashfs is a file system for tests of power losses and disk errors. Mount passes a directory
// through FUSE, records every operation that changes it, and can fail any of them or cut the power at
// it. Build makes the directory that a disk would have after the cut.
package crashfs
