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

// levelLabels uses the level as the label.
type levelLabels struct{}

func (levelLabels) FileLabel(o *v1.SELinuxOptions) (string, error) { return o.Level, nil }

// labelKind may support SELinux mounts.
type labelKind struct {
	hostpath.Plugin
	supported bool
}

func (k labelKind) SupportsSELinuxMount(context.Context, plugin.Spec) (bool, error) {
	return k.supported, nil
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
		"label of pod":                     {change: func(*made) {}, want: "s0:c1"},
		"label of container":               {change: func(m *made) { container(m, 0).SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")} }, want: "s0:c2"},
		"label of container without mount": {change: func(m *made) { container(m, 1).SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")} }, want: "s0:c1"},
		"no SELinux options":               {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxOptions = nil }},
		"SELinux disabled":                 {change: func(m *made) { m.v.deps.Labels = nil }},
		"block volume":                     {change: func(m *made) { raw(nil, m.spec.PV) }},
		"inline volume":                    {change: func(m *made) { m.spec.PV = nil }},
		"driver without support":           {change: func(m *made) { m.kind = labelKind{} }},
		"plugin without support":           {change: func(m *made) { m.kind = hostpath.Plugin{} }},
		"change policy Recursive":          {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxChangePolicy = new(v1.SELinuxChangePolicyRecursive) }},
		"change policy MountOption":        {change: func(m *made) { m.pod.Spec.SecurityContext.SELinuxChangePolicy = new(v1.SELinuxChangePolicyMountOption) }, want: "s0:c1"},
		"gate off, shared volume":          {change: func(m *made) { m.v.cfg.SELinuxMountReadWriteOncePodOnly = true }},
		"gate off, ReadWriteOncePod": {change: func(m *made) {
			m.v.cfg.SELinuxMountReadWriteOncePodOnly = true
			m.spec.PV.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
		}, want: "s0:c1"},
		"two labels": {change: func(m *made) {
			c := container(m, 1)
			c.SecurityContext = &v1.SecurityContext{SELinuxOptions: level("s0:c2")}
			c.VolumeMounts = slices.Clone(container(m, 0).VolumeMounts)
		}, fails: "multiple SELinux labels found: s0:c1,s0:c2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := made{
				v: &Volumes{deps: Deps{Labels: levelLabels{}}}, kind: labelKind{supported: true},
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
