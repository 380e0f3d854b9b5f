package config

import (
	"fmt"
	"testing"

	nodeutil "k8s.io/component-helpers/node/util"
)

// NodeIPs agrees with the function of component-helpers, which would link every API group.
func TestNodeIPs(t *testing.T) {
	values := []string{"", " ", "10.0.0.1", "010.0.0.1", "fd00::1", "0.0.0.0", "::", "x", "10.0.0.2", "10.0.0.1 ", "::ffff:10.0.0.1"}
	flags := append([]string{}, values...)
	for _, a := range values {
		for _, b := range values {
			flags = append(flags, a+","+b, a+","+b+",fd00::2", a+", "+b+",x")
		}
	}
	for _, provider := range []string{"", "external", "aws"} {
		for _, flag := range flags {
			ips, invalid, err := NodeIPs(&Flags{NodeIP: flag, CloudProvider: provider})
			wantIPs, wantInvalid, wantErr := nodeutil.ParseNodeIPArgument(flag, provider)
			got, want := fmt.Sprint(ips, invalid, err), fmt.Sprint(wantIPs, wantInvalid, wantErr)
			if got != want {
				t.Errorf("--node-ip=%q --cloud-provider=%q: %s, want %s", flag, provider, got, want)
			}
		}
	}
}
