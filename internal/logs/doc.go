// Package logs reads the log files that the container runtime writes.
package logs
