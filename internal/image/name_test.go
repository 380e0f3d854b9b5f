package image

import "testing"

func TestParseName(t *testing.T) {
	const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, want := range map[string]struct{ repository, complete, tag string }{
		"busybox":                    {"docker.io/library/busybox", "busybox:latest", "latest"},
		"busybox:1.36":               {"docker.io/library/busybox", "busybox:1.36", "1.36"},
		"localhost:5000/app":         {"localhost:5000/app", "localhost:5000/app:latest", "latest"},
		"quay.io/team/app" + digest:  {"quay.io/team/app", "quay.io/team/app" + digest, ""},
		"quay.io/app:1" + digest:     {"quay.io/app", "quay.io/app:1" + digest, "1"},
		"registry.k8s.io/pause:3.10": {"registry.k8s.io/pause", "registry.k8s.io/pause:3.10", "3.10"},
	} {
		repository, complete, tag, err := parseName(name)
		if err != nil || repository != want.repository || complete != want.complete || tag != want.tag {
			t.Errorf("%s: %q %q %q %v", name, repository, complete, tag, err)
		}
	}
	for _, name := range []string{"", "A", "a b", "a:", "a@sha256:12"} {
		if _, _, _, err := parseName(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}
