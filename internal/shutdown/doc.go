// Package shutdown ends pods in good order when the machine is about to go down. It holds
// systemd-logind up, over D-Bus, for as long as that takes.
package shutdown
