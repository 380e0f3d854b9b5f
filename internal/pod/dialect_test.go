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
		Volumes: append([]v1.Volume{{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Mode: ptr.To[int32](0o700)}}}},
			volumesOf(ptr.To[int64](1000))...),
	}}
}

// volumesOf are volumes whose files belong to the user by each of the fields that can say so.
func volumesOf(user *int64) (all []v1.Volume) {
	keys := []v1.KeyToPath{{User: user}}
	facts := []v1.DownwardAPIVolumeFile{{User: user}}
	for _, source := range []v1.VolumeSource{
		{ConfigMap: &v1.ConfigMapVolumeSource{DefaultUser: user, Items: keys}},
		{Secret: &v1.SecretVolumeSource{DefaultUser: user, Items: keys}},
		{DownwardAPI: &v1.DownwardAPIVolumeSource{DefaultUser: user, Items: facts}},
		{Projected: &v1.ProjectedVolumeSource{DefaultUser: user, Sources: []v1.VolumeProjection{
			{ConfigMap: &v1.ConfigMapProjection{Items: keys}}, {Secret: &v1.SecretProjection{Items: keys}},
			{DownwardAPI: &v1.DownwardAPIProjection{Items: facts}}, {ServiceAccountToken: &v1.ServiceAccountTokenProjection{User: user}},
			{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{User: user}}, {PodCertificate: &v1.PodCertificateProjection{User: user}},
		}}},
	} {
		all = append(all, v1.Volume{VolumeSource: source})
	}
	return all
}

func TestDialect(t *testing.T) {
	all := Dialect{RestartRules: true, EnvFiles: true, EmptyDirMode: true, FileUsers: true, HTTP2Probes: true, GRPCTLS: true}
	main := func(p *v1.Pod) *v1.Container { return &p.Spec.Containers[0] }
	for name, c := range map[string]struct {
		without func(*Dialect)
		want    func(*v1.Pod)
	}{
		"restart rules": {func(d *Dialect) { d.RestartRules = false }, func(p *v1.Pod) {
			main(p).RestartPolicy, main(p).RestartPolicyRules = nil, main(p).RestartPolicyRules[:1]
		}},
		"env files":     {func(d *Dialect) { d.EnvFiles = false }, func(p *v1.Pod) { main(p).Env[0].ValueFrom = nil }},
		"emptyDir mode": {func(d *Dialect) { d.EmptyDirMode = false }, func(p *v1.Pod) { p.Spec.Volumes[0].EmptyDir.Mode = nil }},
		"file users": {func(d *Dialect) { d.FileUsers = false }, func(p *v1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes[:1:1], volumesOf(nil)...)
		}},
		"HTTP/2 probes": {func(d *Dialect) { d.HTTP2Probes = false }, func(p *v1.Pod) { main(p).StartupProbe.HTTPGet.Protocol = nil }},
		"gRPC over TLS": {func(d *Dialect) { d.GRPCTLS = false }, func(p *v1.Pod) { main(p).LivenessProbe.GRPC.Mode = nil }},
		"all is spoken": {func(*Dialect) {}, func(*v1.Pod) {}},
		"nothing at all": {func(d *Dialect) { *d = Dialect{} }, func(p *v1.Pod) {
			c := main(p)
			c.RestartPolicy, c.RestartPolicyRules, c.Env[0].ValueFrom = nil, c.RestartPolicyRules[:1], nil
			c.StartupProbe.HTTPGet.Protocol, c.LivenessProbe.GRPC.Mode, p.Spec.Volumes[0].EmptyDir.Mode = nil, nil, nil
			p.Spec.Volumes = append(p.Spec.Volumes[:1:1], volumesOf(nil)...)
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
