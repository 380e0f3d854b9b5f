// Package logs reads the log files that the container runtime writes: their end, or all of
// them as they grow, through rotations. It never follows a link out of a pod's folder.
package logs
