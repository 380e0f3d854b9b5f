package preflight

import (
	"net"
	"testing"
)

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "10.0.0.1", false},
		{"0.0.0.0", "10.0.0.1", true},
		{"::", "::1", true},
		{"fe80::1", "::1", false},
		{"10.0.0.1", "::", true},
		{"0.0.0.0", "::1", false},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := overlap(net.ParseIP(pair[0]), net.ParseIP(pair[1])); got != c.want {
				t.Errorf("%s and %s: %v", pair[0], pair[1], got)
			}
		}
	}
}
