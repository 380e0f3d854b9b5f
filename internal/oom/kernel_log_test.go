package oom

import (
	"log/slog"
	"strings"
	"testing"
)

func TestOpenMissingKernelLog(t *testing.T) {
	for name, tt := range map[string]struct {
		rules LogRules
		want  string // in the error; no error if empty
	}{
		"cluster node":                        {LogRules{}, "watch for system OOMs: open /no/kmsg: no such file"},
		"gate without a user namespace":       {LogRules{KubeletInUserNamespace: true}, "watch for system OOMs: open /no/kmsg: no such file"},
		"user namespace without the gate":     {LogRules{UserNamespace: true}, "feature gate KubeletInUserNamespace"},
		"user namespace with the gate":        {LogRules{UserNamespace: true, KubeletInUserNamespace: true}, ""},
		"machine without a control plane":     {LogRules{Optional: true}, ""},
		"no control plane, in user namespace": {LogRules{Optional: true, UserNamespace: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := openKernelLog("/no/kmsg", tt.rules, slog.New(slog.DiscardHandler))
			if f != nil || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want error %q", f, err, tt.want)
			}
		})
	}
}
