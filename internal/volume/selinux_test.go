package volume

import (
	"context"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/hostpath"
	"swiftlet/internal/volume/plugin"
)

// byLevel labels files by the level alone.
type byLevel struct{}

func (byLevel) FileLabel(o *v1.SELinuxOptions) (string, error) { return o.Level, nil }

// labelledKind mounts its volumes with a label, or does not.
type labelledKind struct {
	hostpath.Plugin
	able bool
}

func (k labelledKind) SupportsSELinuxMount(context.Context, plugin.Spec) (bool, error) {
	return k.able, nil
}

func TestMountLabel(t *testing.T) {
	level := func(l string) *v1.SELinuxOptions { return &v1.SELinuxOptions{Level: l} }
	type made struct {
		v    *Volumes
		kind plugin.Plugin
		pod  *v1.Pod
		spec plugin.Spec
	}
	container := func(m *made, i int) *v1.Container { return &m.pod.Spec.Containers[i] }
	for name, c := range map[string]struct {
		change func(*made)
		want   string
		fails  string
	}{
		"the pod's":       {change: func(*made) {}, want: "s0:c1"},
		"a container's":   {change: func(m *made) { container(m, 0).SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")} }, want: "s0:c2"},
		"of another one":  {change: func(m *made) { container(m, 1).SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")} }, want: "s0:c1"},
		"not asked for":   {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxOptions = nil }},
		"no SELinux":      {change: func(m *made) { m.v.deps.Labels = nil }},
		"raw":             {change: func(m *made) { raw(nil, m.spec.PV) }},
		"in the pod":      {change: func(m *made) { m.spec.PV = nil }},
		"not able":        {change: func(m *made) { m.kind = labelledKind{} }},
		"not of the kind": {change: func(m *made) { m.kind = hostpath.Plugin{} }},
		"one by one":      {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxChangePolicy = new(v1.SELinuxChangePolicyRecursive) }},
		"mounted at once": {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxChangePolicy = new(v1.SELinuxChangePolicyMountOption) }, want: "s0:c1"},
		"gate off":        {change: func(m *made) { m.v.cfg.SELinuxOnePodOnly = true }},
		"gate off, for one pod": {change: func(m *made) {
			m.v.cfg.SELinuxOnePodOnly = true
			m.spec.PV.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		}, want: "s0:c1"},
		"two": {change: func(m *made) {
			c := container(m, 1)
			c.SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")}
			c.VolumeMounts = slices.Clone(container(m, 0).VolumeMounts)
		}, fails: "multiple SELinux labels found: s0:c1,s0:c2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := made{
				v: &Volumes{deps: Deps{Labels: byLevel{}}}, kind: labelledKind{able: true},
				pod: &v1.Pod{Spec: v1.PodSpec{
					SecurityContext: &v1.PodSecurityContext{SELinuxOptions: level("s0:c1")},
					Containers:      []v1.Container{{Name: "a", VolumeMounts: []v1.VolumeMount{{Name: "vol"}}}, {Name: "b"}},
				}},
				spec: plugin.Spec{Volume: &v1.Volume{Name: "vol"}, PV: &v1.PersistentVolume{}},
			}
			c.change(&m)
			got, err := m.v.mountLabel(t.Context(), m.kind, m.pod, m.spec)
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("got %v, want %s", err, c.fails)
			case c.fails == "" && (err != nil || got != c.want):
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}
