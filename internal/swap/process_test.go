package swap

import (
	"slices"
	"strings"
	"testing"
)

func TestKubeletArgs(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/kubelet --config=a":           "--config=a",
		"kubelet":                               "",
		"/opt/swiftlet kubelet --v=2":           "--v=2",
		"/opt/swiftlet up":                      "no kubelet",
		"/bin/sh /usr/bin/kubelet --config=a":   "no kubelet",
		"vim /etc/systemd/system/kubelet":       "no kubelet",
		"":                                      "no kubelet",
		"/usr/bin/kubelet-wrapper --config=abc": "no kubelet",
	} {
		args, ok := kubeletArgs(strings.Fields(line))
		if ok != (want != "no kubelet") || ok && !slices.Equal(args, strings.Fields(want)) {
			t.Errorf("%q: %q, %v, want %q", line, args, ok, want)
		}
	}
}
