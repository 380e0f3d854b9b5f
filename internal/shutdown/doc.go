// Package shutdown implements graceful node shutdown. When systemd-logind announces a shutdown
// over D-Bus, it terminates pods by priority, and delays the shutdown meanwhile with an
// inhibitor lock.
package shutdown
