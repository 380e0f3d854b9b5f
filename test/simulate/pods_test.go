package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// newPod returns a random pod, and sets how its containers behave.
func (w *workload) newPod(name string) *v1.Pod {
	r := w.r
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault}}
	p.Spec.RestartPolicy = pick(r, v1.RestartPolicyAlways, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(pick(r, 0, 1, 5, 30)))
	p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken = "default", ptr.To(false)
	p.Spec.HostNetwork = often(r, 0.1)
	for i := range pick(r, 0, 0, 0, 1, 2) {
		c := w.newContainer(fmt.Sprintf("init%d", i))
		c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
		b := behaviour{exits: -1, after: between(r, 0, 5*time.Second)}
		if often(r, 0.2) {
			c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
			b = behaviour{stubborn: often(r, 0.2)}
		} else if often(r, 0.1) {
			b.code = 1
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		w.world.change(name, c.Name, func(old *behaviour) { *old = b })
	}
	for i := range pick(r, 1, 1, 2, 3) {
		c := w.newContainer(fmt.Sprintf("main%d", i))
		p.Spec.Containers = append(p.Spec.Containers, c)
		b := w.newBehaviour(r)
		w.world.change(name, c.Name, func(old *behaviour) { *old = b })
	}
	w.addVolumes(p)
	if often(r, 0.05) {
		p.Spec.ActiveDeadlineSeconds = ptr.To(int64(30 + r.IntN(300)))
		w.uncertain[name] = true
	}
	w.world.mu.Lock()
	w.world.deadlines[name] = p.Spec.ActiveDeadlineSeconds != nil
	w.world.mu.Unlock()
	return p
}

func (w *workload) newBehaviour(r *rand.Rand) behaviour {
	b := behaviour{stubborn: often(r, 0.2)}
	switch r.IntN(6) {
	case 0: // completes
		b.exits, b.after = -1, between(r, 0, 5*time.Minute)
	case 1: // fails, always or a few times
		b.exits, b.after, b.code = pick(r, -1, 1, 2), between(r, 0, 30*time.Second), 1
	}
	return b
}

func (w *workload) newContainer(name string) v1.Container {
	r := w.r
	c := v1.Container{Name: name, Image: pick(r, "app:1", "app:1", "app:2"), ImagePullPolicy: v1.PullIfNotPresent}
	if often(r, 0.1) {
		c.Image = pick(r, "registry.example/published", "registry.example/missing")
	}
	if often(r, 0.5) {
		c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m"), v1.ResourceMemory: resource.MustParse("8Mi")}
	}
	if often(r, 0.2) {
		c.ReadinessProbe = w.newProbe()
	}
	if often(r, 0.2) {
		c.LivenessProbe = w.newProbe()
	}
	if often(r, 0.1) {
		c.StartupProbe = w.newProbe()
	}
	hook := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hook"}}}
	if often(r, 0.15) {
		c.Lifecycle = &v1.Lifecycle{PreStop: hook}
	}
	if often(r, 0.1) {
		c.Lifecycle = &v1.Lifecycle{PostStart: hook}
	}
	return c
}

func (w *workload) newProbe() *v1.Probe {
	return &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"probe"}}},
		PeriodSeconds: int32(pick(w.r, 5, 10, 30)), FailureThreshold: int32(pick(w.r, 1, 3)),
		InitialDelaySeconds: int32(pick(w.r, 0, 0, 5)),
	}
}

// addVolumes adds volumes of several kinds to the first container.
func (w *workload) addVolumes(p *v1.Pod) {
	r := w.r
	kinds := []v1.VolumeSource{
		{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("4Ki"))}},
		{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}},
		{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config0"}}},
		{Secret: &v1.SecretVolumeSource{SecretName: "secret0"}},
		{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(3600))}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "config1"}}},
		}}},
		{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
	}
	for i, kind := range kinds {
		if !often(r, 0.2) {
			continue
		}
		name := fmt.Sprintf("volume%d", i)
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: kind})
		mount := v1.VolumeMount{Name: name, MountPath: "/" + name}
		if kind.EmptyDir != nil && often(r, 0.3) {
			mount.SubPath = "part"
		}
		c := &p.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
	if often(r, 0.1) {
		p.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "secret1"}}}}
	}
}
