// Package logs reads, follows and rotates the log files that the container runtime writes. It
// never follows a symbolic link out of a pod's directory.
package logs
