package agent

import (
	"log/slog"
	"strings"
	"testing"

	"swiftlet/internal/config"
)

func TestWithoutKernelLog(t *testing.T) {
	for name, c := range map[string]struct {
		kubeconfig      string
		inside, allowed bool
		want            string // in the error
	}{
		"a node of a cluster":                {"k", false, false, "watch for system OOMs: open /no/kmsg: no such file"},
		"the gate without a namespace":       {"k", false, true, "watch for system OOMs: open /no/kmsg: no such file"},
		"in a user namespace":                {"k", true, false, "feature gate KubeletInUserNamespace"},
		"in a user namespace, with the gate": {"k", true, true, ""},
		"without a cluster":                  {"", false, false, ""},
	} {
		cfg := &config.Config{}
		cfg.Flags.Kubeconfig = c.kubeconfig
		cfg.Features.KubeletInUserNamespace = c.allowed
		a := &Agent{cfg: cfg, log: slog.New(slog.DiscardHandler)}
		a.machine.facts.UserNamespace = c.inside
		log, err := a.openKernelLog("/no/kmsg")
		if log != nil || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, log, err)
		}
	}
}
