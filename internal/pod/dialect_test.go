package pod

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// everyField is a pod that uses each of the fields that a dialect may lack.
func everyField() *v1.Pod {
	always, never := v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyNever
	return &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "sidecar", RestartPolicy: &always}},
		Containers: []v1.Container{{
			Name:          "main",
			RestartPolicy: &never,
			RestartPolicyRules: []v1.ContainerRestartRule{
				{Action: v1.ContainerRestartRuleActionRestartAllContainers},
				{Action: v1.ContainerRestartRuleActionRestart},
			},
			Env: []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{Key: "a"}}}},
			StartupProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
				HTTPGet: &v1.HTTPGetAction{Protocol: ptr.To(v1.HTTPProtocolHTTP2)}}},
			LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
				GRPC: &v1.GRPCAction{Mode: ptr.To(v1.GRPCProbeModeTLS)}}},
		}},
		Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Mode: ptr.To[int32](0o700)}}}},
	}}
}

func TestDialect(t *testing.T) {
	all := Dialect{RestartRules: true, RestartAll: true, EnvFiles: true, EmptyDirMode: true, HTTP2Probes: true, GRPCTLS: true}
	main := func(p *v1.Pod) *v1.Container { return &p.Spec.Containers[0] }
	for name, c := range map[string]struct {
		without func(*Dialect)
		want    func(*v1.Pod)
	}{
		"restart rules": {func(d *Dialect) { d.RestartRules = false }, func(p *v1.Pod) {
			main(p).RestartPolicy, main(p).RestartPolicyRules = nil, nil
		}},
		"restart all":   {func(d *Dialect) { d.RestartAll = false }, func(p *v1.Pod) { main(p).RestartPolicyRules[0].Action = "" }},
		"env files":     {func(d *Dialect) { d.EnvFiles = false }, func(p *v1.Pod) { main(p).Env[0].ValueFrom = nil }},
		"emptyDir mode": {func(d *Dialect) { d.EmptyDirMode = false }, func(p *v1.Pod) { p.Spec.Volumes[0].EmptyDir.Mode = nil }},
		"HTTP/2 probes": {func(d *Dialect) { d.HTTP2Probes = false }, func(p *v1.Pod) { main(p).StartupProbe.HTTPGet.Protocol = nil }},
		"gRPC over TLS": {func(d *Dialect) { d.GRPCTLS = false }, func(p *v1.Pod) { main(p).LivenessProbe.GRPC.Mode = nil }},
		"all is spoken": {func(*Dialect) {}, func(*v1.Pod) {}},
		"nothing at all": {func(d *Dialect) { *d = Dialect{} }, func(p *v1.Pod) {
			c := main(p)
			c.RestartPolicy, c.RestartPolicyRules, c.Env[0].ValueFrom = nil, nil, nil
			c.StartupProbe.HTTPGet.Protocol, c.LivenessProbe.GRPC.Mode, p.Spec.Volumes[0].EmptyDir.Mode = nil, nil, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := all
			c.without(&d)
			given, want := everyField(), everyField()
			c.want(want)
			if got := d.Read(given); !reflect.DeepEqual(got, want) {
				t.Errorf("reads %+v\nwant %+v", got.Spec, want.Spec)
			}
			if !reflect.DeepEqual(given, everyField()) {
				t.Error("the pod that was given has changed")
			}
		})
	}
	plain := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
	if (Dialect{}).Read(plain) != plain {
		t.Error("a pod without such fields was copied")
	}
}
