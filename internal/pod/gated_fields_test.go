package pod

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// everyField is a pod that sets each of the fields that stand behind a gate.
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
			Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1)},
			Env:       []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{Key: "a"}}}},
			StartupProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
				HTTPGet: &v1.HTTPGetAction{Protocol: ptr.To(v1.HTTPProtocolHTTP2)}}},
			LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{
				GRPC: &v1.GRPCAction{Mode: ptr.To(v1.GRPCProbeModeTLS)}}},
		}},
		Volumes: append([]v1.Volume{{VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Mode: ptr.To[int32](0o700)}}}},
			volumesOf(ptr.To[int64](1000))...),
	}}
}

// volumesOf are volumes whose files belong to the user, each by another field.
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

func TestDropDisabled(t *testing.T) {
	main := func(p *v1.Pod) *v1.Container { return &p.Spec.Containers[0] }
	cases := map[string]func(*v1.Pod){ // what becomes of everyField without this gate
		"ContainerRestartRules": func(p *v1.Pod) {
			main(p).RestartPolicy, main(p).RestartPolicyRules = nil, main(p).RestartPolicyRules[:1]
		},
		"ContainerStopSignals":        func(p *v1.Pod) { main(p).Lifecycle.StopSignal = nil },
		"EnvFiles":                    func(p *v1.Pod) { main(p).Env[0].ValueFrom = nil },
		"EmptyDirVolumeMode":          func(p *v1.Pod) { p.Spec.Volumes[0].EmptyDir.Mode = nil },
		"AtomicWriteVolumeUserFields": func(p *v1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes[:1:1], volumesOf(nil)...) },
		"H2CContainerProbe":           func(p *v1.Pod) { main(p).StartupProbe.HTTPGet.Protocol = nil },
		"GRPCContainerProbeTLS":       func(p *v1.Pod) { main(p).LivenessProbe.GRPC.Mode = nil },
	}
	check := func(t *testing.T, fields GatedFields, want *v1.Pod) {
		t.Helper()
		given := everyField()
		if got := fields.DropDisabled(given); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got.Spec, want.Spec)
		}
		if !reflect.DeepEqual(given, everyField()) {
			t.Error("the pod that was passed in has changed")
		}
	}
	without := everyField()
	for _, field := range gatedFields {
		t.Run(field.gate, func(t *testing.T) {
			drop := cases[field.gate]
			if drop == nil {
				t.Fatal("no case for this gate")
			}
			want := everyField()
			drop(want)
			drop(without)
			check(t, NewGatedFields(func(gate string) bool { return gate != field.gate }), want)
		})
	}
	t.Run("all gates off", func(t *testing.T) { check(t, NewGatedFields(func(string) bool { return false }), without) })
	t.Run("all gates on", func(t *testing.T) { check(t, NewGatedFields(func(string) bool { return true }), everyField()) })
	t.Run("zero value", func(t *testing.T) { check(t, GatedFields{}, everyField()) })

	plain := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main"}}}}
	if NewGatedFields(func(string) bool { return false }).DropDisabled(plain) != plain {
		t.Error("a pod without gated fields was copied")
	}
}

func TestDropDisabledStatus(t *testing.T) {
	signal := v1.SIGUSR1
	for _, on := range []bool{true, false} {
		s := v1.ContainerStatus{Name: "c", StopSignal: &signal}
		NewGatedFields(func(gate string) bool { return on || gate != "ContainerStopSignals" }).DropDisabledStatus(&s)
		if shown := s.StopSignal != nil; shown != on || s.Name != "c" {
			t.Errorf("gate on %v: status is %+v", on, s)
		}
	}
}
