// Package boundedio reads files, streams and the output of programs up to a limit. What a pod, a plugin, a
// registry or a client writes is read with it; a test of internal/architecture lists the exceptions.
package boundedio
