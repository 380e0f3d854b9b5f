package pod

import (
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		ips, four, six string // six: with IPv6 first
	}{
		"no address":               {"", "", ""},
		"one IPv4 address":         {"10.0.0.1", "10.0.0.1", "10.0.0.1"},
		"one IPv6 address":         {"fd00::1", "fd00::1", "fd00::1"},
		"one of each":              {"10.0.0.1 fd00::1", "10.0.0.1 fd00::1", "fd00::1 10.0.0.1"},
		"IPv6 before IPv4":         {"fd00::1 10.0.0.1", "10.0.0.1 fd00::1", "fd00::1 10.0.0.1"},
		"two IPv4 addresses":       {"10.0.0.1 10.0.0.2", "10.0.0.1", "10.0.0.1"},
		"two of each":              {"10.0.0.1 10.0.0.2 fd00::1 fd00::2", "10.0.0.1 fd00::1", "fd00::1 10.0.0.1"},
		"IPv4-mapped IPv6 address": {"::ffff:10.0.0.1 fd00::1", "::ffff:10.0.0.1 fd00::1", "fd00::1 ::ffff:10.0.0.1"},
		"invalid address":          {"here", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ips := strings.Fields(c.ips)
			four, six := strings.Join(Addresses(ips, false), " "), strings.Join(Addresses(ips, true), " ")
			if four != c.four || six != c.six {
				t.Errorf("%q, with IPv6 first %q; want %q and %q", four, six, c.four, c.six)
			}
		})
	}
}
