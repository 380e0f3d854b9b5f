// Package checkpoint stores small pieces of state in files. A file is written atomically, and its
// checksum is verified when it is read.
package checkpoint
