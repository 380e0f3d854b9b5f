// Package host configures and reads the machine and the process that the agent runs in:
// kernel settings, process limits, the lock file, the host name, systemd.
package host
